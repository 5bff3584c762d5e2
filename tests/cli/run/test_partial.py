"""A part of the names, or of the rights: what can be done is done, and the rest is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, pod_object, run_object, served
from tests.cli.test_every_failure import no_right
from tests.kube.fake_api import Answer, Request
from tests.wording import Wording, mentions
from webhook.kube.failure_text import target_of

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FILE = json.dumps(
    {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "metadata": {"generateName": "mnist-"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
    }
)


class Restricted(Cluster):
    """A cluster in which some methods are forbidden at some paths; what is posted is stored."""

    def __init__(self, *forbidden: tuple[str, str]) -> None:
        super().__init__()
        self.forbidden = forbidden

    async def answer(self, request: Request, answer: Answer) -> None:
        target = target_of(request.path)
        if target and (request.method, request.path) in self.forbidden:
            await no_right(request, answer, target)
        elif request.method == "POST":
            body: dict[str, Any] = json.loads(request.body)
            name = body["metadata"].get("name") or f"{body['metadata']['generateName']}x1"
            metadata = {"uid": "u9", "generation": 1, **body["metadata"], "name": name}
            self.objects[f"{request.path}/{name}"] = {**body, "metadata": metadata}
            await answer.json(self.objects[f"{request.path}/{name}"], 201)
        elif request.method == "DELETE" and request.path in self.objects:
            await answer.json(self.objects.pop(request.path))
        else:
            await super().answer(request, answer)


def restricted(*forbidden: tuple[str, str]) -> Restricted:
    there = Restricted(*forbidden)
    for name in ("a", "c"):
        worker = {"desired": 1, "activeIndexes": "0"}
        status = {"phase": "Pending", "message": "0 of 1 run: no node", "replicas": {"w": worker}}
        there.add(RUNS, run_object(name, f"u-{name}", **status))
    return there


@pytest.mark.parametrize("verb", ["delete", "suspend", "resume"])
def test_of_several_names_those_that_exist_are_changed(tmp_path: Path, verb: str) -> None:
    """The others are errors, all of them."""
    there = restricted()
    with served(there, tmp_path) as call:
        done = call(verb, "b", "a", "nope", "c", "a")
    assert done.exit_code == 2
    changed = [each for each in there.requests if each.method in ("DELETE", "PATCH")]
    assert [each.path for each in changed] == [f"{RUNS}/a", f"{RUNS}/c"]
    mentions(done.stderr, "run b: not found", "run nope: not found")
    assert len(done.stdout.splitlines()) == 2


def test_a_start_is_asked_for_where_one_is_waited_for(tmp_path: Path, wording: Wording) -> None:
    """Of other Runs it is an error; the annotation has the time."""
    there = restricted()
    for name, state in (("d", "Waiting"), ("e", "Whole")):
        run = run_object(name, f"u-{name}", gang={"state": state, "since": "2026-11-30T11:00:00Z"})
        run["spec"]["gang"] = {"startWithin": "10m"}
        there.add(RUNS, run)
    with served(there, tmp_path) as call:
        done = call("start", "a", "d", "e")
    assert done.exit_code == 1
    (patch,) = (each for each in there.requests if each.method == "PATCH")
    assert patch.path == f"{RUNS}/d"
    assert [*json.loads(patch.body)["metadata"]["annotations"]] == ["fairlead.dev/start-now"]
    wording(done.stderr)


@pytest.mark.parametrize("words", [("list",), ("logs",)])
def test_of_several_names_those_that_exist_are_shown(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    there = restricted()
    with served(there, tmp_path) as call:
        done = call(*words, "a", "b", "c")
    assert done.exit_code == 2
    mentions(done.stderr, "run b: not found")
    mentions(done.output, "a", "c", "Pending")


def test_a_run_without_a_log_says_what_it_waits_for(tmp_path: Path, wording: Wording) -> None:
    """By its own status; a replica with a pod by the pod."""
    there = restricted()
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod = pod_object("w-0", run="c", uid="u-c", phase="Pending", containerStatuses=[waiting])
    there.add(PODS, pod)
    with served(there, tmp_path) as call:
        for name in ("a", "c"):
            done = call("logs", name)
            assert (done.exit_code, done.stdout) == (1, "")
            wording(done.stderr)


def test_without_the_right_to_list_pods_the_run_says_what_it_says(
    tmp_path: Path, wording: Wording
) -> None:
    """Its phase, counts and usage; what is not known is a note."""
    there = restricted(("GET", PODS))
    with served(there, tmp_path) as call:
        shown = call("status", "a")
        document = json.loads(call("status", "a", "-o", "json").stdout)
        used = call("cost", "a")
        top = call("top", "--once")
    assert {shown.exit_code, used.exit_code, top.exit_code} == {0}
    mentions(shown.stdout, "Pending, 0 of 1 run: no node", "Roles")
    assert "Missing" not in shown.stdout
    assert document["replicas"] == []
    mentions(document["notes"][0], "jane may not list pods")
    mentions(top.stdout, "a", "Pending")
    for done in (shown, used, top):
        mentions(done.stderr, "jane may not list pods")
    wording(f"{shown.stderr}{used.stderr}")


@pytest.mark.parametrize("left", [False, True])
def test_a_run_whose_code_cannot_be_stored_is_deleted_again(
    tmp_path: Path, wording: Wording, left: bool
) -> None:
    """The cause is said first, then what is left, with the command for it."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("")
    more = [("DELETE", f"{RUNS}/mnist")] if left else []
    there = Restricted(("POST", CONFIG_MAPS), *more)
    with served(there, tmp_path) as call:
        done = call("create", "mnist", "--image", "a", "--code", str(tmp_path / "code"))
    text = str(done.exception)
    assert (f"{RUNS}/mnist" in there.objects) == left
    assert text.startswith("jane may not create configmaps in namespace default")
    mentions(text, "left behind" if left else "deleted again")
    wording(text)


def test_a_run_without_a_name_of_its_own_gets_one(tmp_path: Path) -> None:
    """generateName is followed by the name that the API server made."""
    (tmp_path / "run.json").write_text(FILE)
    there = Restricted()
    with served(there, tmp_path) as call:
        made = call("create", "-f", str(tmp_path / "run.json"))
        named = call("create", "-f", str(tmp_path / "run.json"), "-o", "name")
    assert (made.exit_code, named.exit_code) == (0, 0), made.output
    assert made.stdout == "run.fairlead.dev/mnist-x1 created\n"
    assert named.stdout == "run.fairlead.dev/mnist-x1\n"
