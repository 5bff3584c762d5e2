"""`fairlead run create`, `list`, `wait`, `suspend`, `resume`, `delete` and `top`, for real."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cluster.live_runs import CONTAINER, LiveRun, create_run
from tests.cluster.policy_plane import cluster_kubectl, control_plane, run_api  # noqa: F401
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.ui.served_pages import PROGRAM, page
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.cli.run import changing
from webhook.questions.live.live_objects import NoSuchObject

pytest_plugins = ["tests.cluster.run_fixtures"]


def create(space: Space, *options: object, program: tuple[str, ...] = ("true",)) -> Result:
    where = ("--kubeconfig", str(space.plane.kubeconfig), "-n", space.name)
    words = ["run", "create", "--image", str(CONTAINER["image"]), *map(str, options), *where]
    return CliRunner().invoke(fairlead, [*words, "--", *program])


@contextmanager
def ended_once_it_runs(space: Space, name: str, replica: str, code: int) -> Iterator[None]:
    """Let a replica end beside the command that creates its Run."""
    live = LiveRun(space, name)

    def play() -> None:
        eventually("it is there", lambda: space.find("runs", name))
        live.until_phase("Running")
        live.ends(replica, code)

    player = threading.Thread(target=play)
    player.start()
    yield
    player.join()


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 1)])
def test_a_run_is_created_and_waited_for(run_space: Space, code: int, expected: int) -> None:
    """Its phases are said, and the command exits with 1 if the Run fails."""
    options = ("--framework", "pytorch", "--workers", "1", "--set", "spec.backoffLimit=0")
    with ended_once_it_runs(run_space, "mnist", "worker-0", code):
        done = create(run_space, "mnist", *options, "--wait")
    assert done.exit_code == expected, done.output
    mentions(done.output, "run.fairlead.dev/mnist created")
    ended = "Succeeded" if code == 0 else "Failed"
    mentions(done.output, f"run mnist: {ended}")
    assert run_space.ask("run", "wait", "mnist").exit_code == (1 if code else 0)


def test_code_is_mounted_from_a_config_map_that_the_run_owns(
    run_space: Space, tmp_path: Path
) -> None:
    """It goes with the Run; a submit that fails leaves nothing."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a b.py").write_bytes(b"\xff\x00")
    done = create(run_space, "coded", "--code", tmp_path)
    assert done.exit_code == 0, done.output
    live = LiveRun(run_space, "coded")
    live.until_phase("Running")
    found = run_space.get("configmaps", "coded-code")
    assert found["metadata"]["ownerReferences"][0]["uid"] == live.run()["metadata"]["uid"]
    assert list(found["binaryData"].values()) == ["/wA="]
    (pod,) = live.pods().values()
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "code")
    assert volume["configMap"]["items"] == [{"key": "file-0", "path": "lib/a b.py"}]

    run_space.kubectl("create", "configmap", "taken-code")
    failed = create(run_space, "taken", "--code", tmp_path)
    assert failed.exit_code == 1
    mentions(str(failed.exception), "taken-code", "exists already")
    LiveRun(run_space, "taken").until_gone()


def number(pod: dict[str, Any]) -> int:
    """FAIRLEAD_ATTEMPT of a pod."""
    env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    return int(env[names.ATTEMPT_VARIABLE])


def test_a_run_that_is_over_is_tried_again(run_space: Space, tmp_path: Path) -> None:
    """Its pods have greater numbers, and its code outlives the Run before."""
    (tmp_path / "train.py").write_text("print()")
    options = ("--framework", "jax", "--workers", "2", "--set", "spec.backoffLimit=1")
    assert create(run_space, "mnist", *options, "--code", tmp_path).exit_code == 0
    live = LiveRun(run_space, "mnist")
    pods = live.until_running("worker-0", "worker-1")
    early = run_space.ask("run", "retry", "mnist")
    assert early.exit_code == 1
    mentions(str(early.exception), "run mnist is", "not over", "fairlead run wait mnist -n")
    live.ends("worker-1", 1)
    again = live.until_replaced("worker-1", pods["worker-1"])
    last = number(again)
    assert last > number(pods["worker-1"])
    live.ends("worker-0", 1)
    live.until_phase("Failed")

    run_space.patch("runs", "mnist", {"metadata": {"annotations": {"note": "kept"}}})
    retried = run_space.ask("run", "retry", "mnist")
    assert retried.output == "run.fairlead.dev/mnist-2 created\n"
    second = LiveRun(run_space, "mnist-2")
    pods = second.until_running("worker-0", "worker-1")
    assert all(number(pod) > last for pod in pods.values())
    last = max(number(pod) for pod in pods.values())
    made, before = second.run(), live.run()
    assert made["metadata"]["annotations"][names.RETRY_OF] == "mnist"
    assert made["spec"]["backoffLimit"] == before["spec"]["backoffLimit"]
    assert run_space.ask("run", "delete", "mnist", "--wait").exit_code == 0
    eventually("its code goes", lambda: run_space.find("configmaps", "mnist-code") is None)
    kept = run_space.get("configmaps", "mnist-2-code")
    assert kept["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    mounted = pods["worker-0"]["spec"]["volumes"]
    assert "mnist-2-code" in [(each.get("configMap") or {}).get("name") for each in mounted]
    run_space.patch("runs", "mnist-2", {"spec": {"backoffLimit": 0}})
    second.ends("worker-0", 4)
    second.until_phase("Failed")
    third = run_space.ask("run", "retry", "mnist-2", "-o", "name")
    assert third.output == "run.fairlead.dev/mnist-3\n"
    pods = LiveRun(run_space, "mnist-3").until_running("worker-0", "worker-1")
    assert all(number(pod) > last for pod in pods.values())
    listed = run_space.ask("run", "list", "-l", f"{names.FIRST_TRY}=mnist", "-o", "name").output
    assert listed.split() == ["run.fairlead.dev/mnist-2", "run.fairlead.dev/mnist-3"]


def test_what_nobody_enforces_is_said(run_space: Space, tmp_path: Path) -> None:
    """Without the webhook a run's capacity is only a wish; and a resumed run is not Suspended."""
    (tmp_path / "a.py").write_text("")
    options = ("--framework", "pytorch", "--workers", "1", "--spot", "require")
    with ended_once_it_runs(run_space, "wish", "worker-0", 0):
        done = create(run_space, "wish", *options, "--code", tmp_path, "--wait")
    assert done.exit_code == 0, done.output
    mentions(done.stderr, "capacity", "no webhook")
    assert "Suspended" not in done.stderr
    plain = create(run_space, "plain")
    assert plain.stderr == ""


def test_runs_are_listed_in_every_form(run_space: Space) -> None:
    run_space.create({**_labelled("a", "x")})
    create_run(run_space, "b").until_phase("Running")
    text = run_space.ask("run", "list")
    lines = text.output.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == ["NAME", "a", "b"]
    mentions(text.output, "MESSAGE", "the run is suspended")
    assert "1 of 1" not in text.output
    names = run_space.ask("run", "list", "-o", "name").output.split()
    assert names == ["run.fairlead.dev/a", "run.fairlead.dev/b"]
    chosen = run_space.ask("run", "list", "-l", "team=x", "-o", "json")
    assert [each["metadata"]["name"] for each in json.loads(chosen.stdout)["items"]] == ["a"]
    wide = run_space.ask("run", "list", "b", "-o", "wide")
    mentions(wide.output, "1 of 1 replicas run", "Running", "job")
    everywhere = run_space.ask("run", "list", "-A")
    mentions(everywhere.output, "NAMESPACE", run_space.name)
    missing = run_space.ask("run", "list", "nosuch")
    assert missing.exit_code == 2
    mentions(missing.stderr, "nosuch", "a", "b")


def _labelled(name: str, team: str) -> dict[str, Any]:
    spec = {"suspend": True, "template": {"spec": {"containers": [CONTAINER]}}}
    metadata = {"name": name, "labels": {"team": team}}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "metadata": metadata,
        "spec": spec,
    }


def test_waiting_ends_as_the_help_says(run_space: Space) -> None:
    """0 reached, 1 ended otherwise or gone, 3 late; what it waits for is said."""
    stuck = create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})
    stuck.until("the scheduler says so", lambda: "nodes are" in stuck.status.get("message", ""))
    late = run_space.ask("run", "wait", "stuck", "--for", "Running", "--timeout", "1s")
    assert late.exit_code == 3, late.output
    mentions(late.output, "nodes are available", "Pending, not Running")
    assert isinstance(run_space.ask("run", "wait", "nosuch").exception, NoSuchObject)
    where = ("--kubeconfig", str(run_space.plane.kubeconfig), "-n", run_space.name)
    words = (*PROGRAM, "run", "wait", "stuck", "--for", "running", *where)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as waiter:
        assert waiter.stderr
        mentions(waiter.stderr.readline(), "run stuck: Pending", "nodes are available")
        deleted = run_space.ask("run", "delete", "stuck")
        assert deleted.output == "run.fairlead.dev/stuck deleted\n"
        assert waiter.wait() == 1
    live = create_run(run_space, "fails", backoffLimit=0)
    live.until_phase("Running")
    condition = ("--for", "condition=AllPodsReady")
    live.ends("master-0", 2)
    live.until_phase("Failed")
    assert run_space.ask("run", "wait", "fails", *condition).exit_code == 1
    assert run_space.ask("run", "wait", "fails", "--for", "Failed").exit_code == 0
    for verb in ("suspend", "resume"):
        done = run_space.ask("run", verb, "fails")
        assert done.exit_code == 1
        mentions(done.stderr, "run fails is over (Failed)", "fairlead run retry fails -n")


def test_runs_are_suspended_resumed_and_deleted(run_space: Space) -> None:
    """By name or label; several go on after one that cannot be changed."""
    live = create_run(run_space, "mnist")
    live.until_phase("Running")
    nothing = run_space.ask("run", "suspend")
    assert nothing.exit_code == 2
    mentions(nothing.output, "--selector", "--all")
    assert run_space.ask("run", "suspend", "mnist").output.endswith("mnist suspended\n")
    live.until_phase("Suspended")
    assert run_space.ask("run", "resume", "--all").output.endswith("mnist resumed\n")
    live.until_phase("Running")
    assert run_space.ask("run", "resume", "mnist").output.endswith("mnist unchanged\n")
    assert run_space.ask("run", "delete", "-l", "team=none").exit_code == 0
    done = run_space.ask("run", "delete", "mnist", "-o", "name")
    assert done.output == "run.fairlead.dev/mnist\n"
    live.until_gone()
    for name in ("x", "y"):
        run_space.create(_labelled(name, "z"))
    resumed = run_space.ask("run", "resume", "-l", "team=z", "-o", "json")
    assert [each["spec"].get("suspend") for each in json.loads(resumed.stdout)["items"]] == [
        False
    ] * 2
    waited = run_space.ask("run", "wait", "-l", "team=z", "--for", "Running", "-o", "name")
    assert waited.exit_code == 0, waited.output
    assert waited.stdout.split() == ["run.fairlead.dev/x", "run.fairlead.dev/y"]
    both = run_space.ask("run", "delete", "x", "y", "-o", "wide")
    mentions(both.output, "x Running", "y Running", "job")
    again = create_run(run_space, "again")
    again.until_phase("Running")
    assert run_space.ask("run", "delete", "again", "--wait").exit_code == 0
    assert run_space.find("runs", "again") is None
    assert again.pods() == {}


def test_runs_that_wait_in_queues_are_suspended_and_exactly_those_resumed(run_space: Space) -> None:
    """One that runs goes on; what its owner suspended, or suspended again, stays so."""
    live = create_run(run_space, "runs")
    live.until_phase("Running")
    labels = {names.KUEUE_QUEUE: "ml"}
    for name in ("waits", "owned", "own"):
        run = _labelled(name, "z")
        run["spec"]["suspend"] = name == "own"
        run["metadata"]["labels"] = labels
        run_space.create(run)
    LiveRun(run_space, "waits").until("it waits", lambda: _waits(run_space, "waits"))
    done = run_space.ask("run", "suspend", "--queued", "-o", "name")
    assert done.stdout.split() == ["run.fairlead.dev/owned", "run.fairlead.dev/waits"]
    assert run_space.ask("run", "suspend", "owned").output.endswith("owned unchanged\n")
    assert run_space.get("runs", "runs")["spec"].get("suspend") is not True
    for _ in range(2):
        done = run_space.ask("run", "resume", "--queued")
        assert done.exit_code == 0, done.output
    assert done.output == "note: there are no such Runs\n"
    suspended = {name: run_space.get("runs", name)["spec"]["suspend"] for name in LATER}
    assert suspended == LATER
    assert run_space.get("runs", "waits")["metadata"]["labels"] == labels


LATER = {"waits": False, "owned": True, "own": True}


def _waits(space: Space, name: str) -> bool:
    return "queue ml" in space.get("runs", name).get("status", {}).get("message", "")


def test_a_deletion_is_waited_for_until_the_pods_are_gone(
    run_space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is said; a new Run of the name is told to wait for a Run that stays."""
    monkeypatch.setattr(changing, "DELETION_TIMEOUT_SECONDS", 2.0)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    live = create_run(run_space, "slow")
    live.until_phase("Running")
    run_space.patch("runs", "slow", held)
    done = run_space.ask("run", "delete", "slow", "--wait")
    assert done.exit_code == 1
    mentions(done.stderr, "its finalizers are not gone yet", ".metadata.finalizers")
    again = create(run_space, "slow")
    assert again.exit_code == 1
    mentions(str(again.exception), "is being deleted", "wait until it is gone", "kubectl wait")
    run_space.patch("runs", "slow", {"metadata": {"finalizers": None}})
    live.until_gone()
    later = create_run(run_space, "later")
    later.until_phase("Running")
    (pod,) = later.pods().values()
    run_space.patch("pods", pod["metadata"]["name"], held)
    done = run_space.ask("run", "delete", "later", "--wait")
    assert done.exit_code == 1
    mentions(done.stderr, "its pods are not gone yet", "kubectl get pods", names.RUN_UID)
    assert run_space.find("runs", "later") is None


def test_top_has_nodes_and_what_is_waited_for(run_space: Space) -> None:
    live = create_run(run_space, "mnist", replicas={"worker": {"count": 3}})
    live.until_phase("Running")
    stuck = create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})
    stuck.until("the scheduler says so", lambda: "nodes are" in stuck.status.get("message", ""))
    shown = run_space.ask("run", "top", "--once")
    assert shown.exit_code == 0, shown.output
    rows = {line.split()[0]: line for line in shown.output.splitlines()}
    mentions(rows["mnist"], "Running", "3/3")
    mentions(shown.output, "nodes are available")
    one = run_space.ask("run", "top", "mnist", "--once").output.splitlines()
    assert one[0] == "mnist: Running, 3/3 ready"
    assert [line.split()[:2] for line in one[2:]] == [
        [f"worker-{at}", "Running"] for at in range(3)
    ]
    data = json.loads(run_space.ask("run", "top", "-o", "json").stdout)
    assert {each["run"]: each["ready"] for each in data["runs"]} == {"mnist": "3/3", "stuck": "0/1"}
    named = run_space.ask("run", "top", "-l", "none=such", "-o", "name")
    assert named.output == ""
    waits = run_space.ask("run", "top", "stuck", "--once").output
    mentions(waits, "master-0 Pending", "nodes are available")


def test_logs_that_cannot_be_read_do_not_end_the_waiting(run_space: Space) -> None:
    """No container runs here; it is said, and the exit code is the program's."""
    with ended_once_it_runs(run_space, "quiet", "master-0", 0):
        done = create(run_space, "quiet", "--logs")
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.output


def test_a_preview_comes_first(run_space: Space) -> None:
    """With the cluster's policies, here none; the Run is created then."""
    done = create(run_space, "seen", "--preview")
    assert done.exit_code == 0, done.output
    mentions(done.output, "Run/seen in", "1 pod", "run.fairlead.dev/seen created")


def test_a_run_whose_pods_the_api_server_refuses_is_not_created_after_a_preview(
    run_space: Space,
) -> None:
    """A quota, which only the API server knows."""
    run_space.create(an_object("v1", "ResourceQuota", "none", {"hard": {"pods": "0"}}))
    done = create(run_space, "refused", "--preview")
    assert done.exit_code == 1, done.output
    mentions(done.output, "Run/refused in", "exceeded quota: none")
    assert "created" not in done.output


def test_names_are_completed(run_space: Space) -> None:
    create_run(run_space, "mnist")
    create_run(run_space, "other")
    typed = f"fairlead run status --kubeconfig {run_space.plane.kubeconfig} -n {run_space.name} m"
    variables = {
        "_FAIRLEAD_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = CliRunner().invoke(
        fairlead, [], prog_name="fairlead", complete_var="_FAIRLEAD_COMPLETE", env=variables
    )
    assert "plain,mnist" in done.output
    assert "other" not in done.output


def test_statuses_are_as_of_the_last_look_of_a_controller(run_space: Space) -> None:
    """Nobody renews the Lease: what is shown may be over. Without a Lease nothing is known."""
    create_run(run_space, "kept").until_phase("Running")
    commands = (("run", "list"), ("run", "status", "kept"), ("policy", "list"))
    for command in commands:
        assert "no controller has looked" not in run_space.ask(*command).output
    run_space.kubectl.run("create", "namespace", names.NAMESPACE)
    about = {"name": names.CONTROLLER, "namespace": names.NAMESPACE}
    spec = {"holderIdentity": "gone", "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = an_object(
        "coordination.k8s.io/v1", "Lease", about, {**spec, "leaseDurationSeconds": 15}
    )
    path = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
    run_space.plane.api.create(path, lease)
    try:
        for command in commands:
            mentions(run_space.ask(*command).output, "as of 2026-01-01T00:00:00: no controller")
        where = ("--kubeconfig", str(run_space.plane.kubeconfig), "-n", run_space.name)
        with page("cluster", *where) as served:
            served.enter()
            for shown in ("/runs", f"/runs/{run_space.name}/kept"):
                text = served.ask("GET", shown).text
                mentions(text, "as of 2026-01-01T00:00:00: no controller")
    finally:
        run_space.plane.api.delete(f"{path}/{names.CONTROLLER}")
