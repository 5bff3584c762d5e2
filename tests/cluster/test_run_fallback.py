"""A run whose nodes do not come: it waits, gives their class up, and returns to it.

And nobody gets other nodes by writing a history: the webhook believes it of one user only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cluster.live_runs import CONTAINER, LiveRun, run_manifest
from tests.cluster.spaces import Json, NewNamespace, Space, stamp
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.run.model.intervals import parse_intervals
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.simulated_nodes import Pool, node_manifests
from webhook.times import parse_time, to_second

pytest_plugins = [
    "tests.cluster.policy_fixtures",
    "tests.cluster.run_fixtures",
    "tests.cluster.webhook_fixtures",
]
pytestmark = pytest.mark.usefixtures("policy_api", "running", "rare_node")

RARE = "example.com/rare"
NODE = "rare-0"
POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: rare}
spec: {nodes: [{labels: {example.com/rare: "true"}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: on-rare-nodes}
spec:
  match: {namespaceSelector: {matchLabels: {test: fallback}}}
  overrides:
    capacity:
    - class: rare
      mode: Constrain
      fallback: {afterPending: 4s, returnAfter: 6s}
"""
LOST = json.dumps(
    {
        "asOf": "2026-01-01T00:00:00Z",
        "events": [{"class": "rare", "time": "2026-01-01T00:00:00Z", "waitedSeconds": 86400}],
    }
)


@pytest.fixture(scope="module")
def rare_node(control_plane: ControlPlane) -> Iterator[None]:
    """The only node of the class."""
    (node,) = node_manifests([Pool(name="rare", count=1, labels={RARE: "true"})])
    control_plane.api.create("/api/v1/nodes", node)
    yield
    control_plane.api.call("DELETE", f"/api/v1/nodes/{NODE}")


@pytest.fixture
def rare_class(run_space: Space) -> Iterator[None]:
    """The class is an object, so that the controller knows it."""
    document = POLICIES.partition("---")[0]
    run_space.kubectl("apply", "-f", "-", stdin=document)
    yield
    run_space.kubectl("delete", "-f", "-", stdin=document)


@pytest.fixture
def space(run_space: Space, new_namespace: NewNamespace) -> Space:  # noqa: ARG001
    """A namespace in which the policy holds, and a controller."""
    return new_namespace({"test": "fallback"})


@pytest.fixture
def sold_out(space: Space) -> Iterator[None]:
    """The node is cordoned."""
    space.kubectl("cordon", NODE)
    yield
    space.kubectl("uncordon", NODE)


def requires(pod: Json) -> bool:
    """Whether the pod requires nodes of the class."""
    return RARE in json.dumps(pod["spec"].get("affinity", {}))


def nodes_of(run: LiveRun) -> set[str]:
    """The nodes of its pods; empty while one has none."""
    found = [pod["spec"].get("nodeName", "") for pod in run.live().values()]
    return set(found) if all(found) else set()


@pytest.mark.usefixtures("sold_out")
@pytest.mark.parametrize("scope", ["Replica", "Run"])
def test_a_run_waits_gives_the_class_up_and_returns_to_it(
    space: Space, tmp_path: Path, scope: str
) -> None:
    """Without a restart, a failure or a disruption; it returns when it restarts after a while."""
    space.create(run_manifest("train", replicas={"worker": {"count": 2}}, restartScope=scope))
    run = LiveRun(space, "train")
    run.until("it waits", lambda: "given up" in run.status.get("message", ""))
    mentions(run.status["message"], "of 2 pods", "class rare", "Z")
    assert all(requires(pod) for pod in run.live().values())
    run.until_running("worker-0", "worker-1")
    pods = run.live()
    assert NODE not in nodes_of(run)
    assert not any(requires(pod) for pod in pods.values())
    assert all(isinstance(stamp(pod)["fallback"]["rare"], str) for pod in pods.values())
    assert (run.status["restarts"], run.status["disruptions"]) == (0, 0)
    # Replicas that restart alone have begun to wait, and so give up, each at a time of its own.
    histories = run.role("worker")["history"]
    assert sorted(i for each in histories for i in parse_intervals(each["indexes"])) == [0, 1]
    assert {event["class"] for each in histories for event in each["events"]} == {"rare"}
    told = [each["reason"] for each in space.items("events")]
    assert "GaveUpClass" in told
    policies = tmp_path / "p.yaml"
    policies.write_text(POLICIES)
    explained = space.ask("explain", "run/train", "--policies", policies)
    assert explained.exit_code == 0, explained.output
    mentions(explained.output, "capacity[rare]: Allow instead of Constrain", "2 of 2")

    space.kubectl("uncordon", NODE)
    begun = max(each["asOf"] for each in histories)
    run.until("it may return", lambda: _passed(space, begun))
    # New pods require the class again, so the live ones are not as new ones would be.
    explained = space.ask("explain", "run/train", "--policies", policies)
    assert explained.exit_code == 1, explained.output
    mentions(explained.output, "0 of 2 as new ones would be", "by the history with which the pod")
    otherwise = space.ask("pods", "--otherwise", "--policies", policies)
    mentions(otherwise.output, "2 would be placed otherwise", "class rare is given up until")
    for name in ("worker-0", "worker-1") if scope == "Replica" else ("worker-0",):
        run.ends(name, 1)
    run.until("it is back", lambda: nodes_of(run) == {NODE})


def _passed(space: Space, begun: str) -> bool:
    """Whether the class is required again, as the webhook says of a pod of the controller's."""
    history = {
        "asOf": to_second(datetime.now(UTC)),
        "events": [{"class": "rare", "time": begun, "waitedSeconds": 9}],
    }
    pod = a_pod("asked", json.dumps(history))
    user = ("--as", names.CONTROLLER_USER)
    done = space.kubectl.run(
        *("create", "--dry-run=server", "-o", "json", "-f", "-"), *user, stdin=json.dumps(pod)
    )
    assert done.returncode == 0, done.stderr
    return requires(json.loads(done.stdout))


def a_pod(name: str, history: str) -> Json:
    metadata = {"name": name, "labels": {names.RUN: "r"}, "annotations": {names.HISTORY: history}}
    spec = {"containers": [CONTAINER]}
    return an_object("v1", "Pod", metadata, spec)


@pytest.mark.usefixtures("rare_class")
def test_an_author_gets_out_of_no_class_by_terms_that_its_nodes_do_not_meet(space: Space) -> None:
    """Its pod waits, and the status says why; a class without nodes is given up as ever."""
    other = next(
        each["metadata"]["name"]
        for each in json.loads(space.kubectl("get", "nodes", "-o", "json"))["items"]
        if each["metadata"]["name"] != NODE and not each["spec"].get("taints")
    )
    spec = {"nodeSelector": {names.HOSTNAME_LABEL: other}, "containers": [CONTAINER]}
    counts = {"worker": {"count": 1}}
    space.create(run_manifest("train", replicas=counts, template={"spec": spec}))
    run = LiveRun(space, "train")
    run.until("it waits", lambda: "no reason" in run.status.get("message", ""))
    pod = run.live()["worker-0"]
    for text in (run.status["message"], run.condition("Scheduled")["message"]):
        mentions(text, "train-worker-0", "class rare", f"hostname={other}")
    told = {each["reason"]: each["message"] for each in run.events()}
    mentions(told["Unschedulable"], "class rare", f"hostname={other}")
    since = next(
        parse_time(each["lastTransitionTime"])
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )
    run.until("it would be given up", lambda: datetime.now(UTC) > since + timedelta(seconds=9))
    assert run.live()["worker-0"]["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "history" not in run.role("worker")

    space.kubectl("label", "node", NODE, f"{RARE}-")
    try:
        # Else it is looked at once in a minute.
        space.kubectl("annotate", "run/train", "look=again")
        run.until("it falls back", lambda: nodes_of(run) == {other})
    finally:
        space.kubectl("label", "node", NODE, f"{RARE}=true")


@pytest.mark.usefixtures("sold_out")
def test_nobody_else_writes_a_history(space: Space) -> None:
    """Not an administrator with kubectl, and not the controller of Jobs by its template."""
    made = space.create(a_pod("forged", LOST))
    job = an_object(
        "batch/v1",
        "Job",
        "j",
        {
            "template": {
                "metadata": a_pod("", LOST)["metadata"],
                "spec": {"restartPolicy": "Never", "containers": [CONTAINER]},
            }
        },
    )
    space.create(job)
    pods = eventually("the Job's pod", lambda: space.items("pods", "job-name=j"))
    for pod in (made, *pods):
        assert requires(pod)
        assert names.HISTORY not in pod["metadata"]["annotations"]


@pytest.mark.parametrize("where", ["template", "environment"])
def test_a_run_does_not_write_its_history(space: Space, where: str) -> None:
    """It has no pods, and its status says why."""
    annotations = {"annotations": {names.HISTORY: LOST}}
    spec: Json = {"template": {"spec": {"containers": [CONTAINER]}}}
    if where == "template":
        spec["template"]["metadata"] = annotations
    else:
        spec["environment"] = annotations
    space.create(run_manifest("forged", **spec))
    run = LiveRun(space, "forged")
    run.until_phase("Failed")
    mentions(run.status["message"], names.HISTORY, "remove it")
    assert not space.pods()


@pytest.mark.usefixtures("sold_out")
def test_a_stored_pod_says_nothing_of_the_next_one(space: Space) -> None:
    """Whoever writes another wait into its stamp, or a history, gets what the policy says."""
    space.create(run_manifest("train", replicas={"worker": {"count": 1}}))
    run = LiveRun(space, "train")
    run.until("the pod is there", lambda: run.live())
    pod = run.live()["worker-0"]
    forged = {**stamp(pod), "fallback": {"rare": 0}}
    changed = {names.PLACEMENT: json.dumps(forged), names.HISTORY: LOST}
    space.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": changed}})

    def replaced() -> Json | None:
        found = run.live().get("worker-0")
        return found if found and found["metadata"]["uid"] != pod["metadata"]["uid"] else None

    assert requires(eventually("another pod", replaced))
