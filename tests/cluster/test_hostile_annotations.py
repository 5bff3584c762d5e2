"""Whatever stands in a pod's annotations, all other pods are judged, and its Run is managed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import Result

from tests import hostile
from tests.cluster.live_runs import CONTAINER, LiveRun, run_manifest
from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.evaluation import one_pod
from webhook.evaluation.world import World
from webhook.questions.live import live_answers, pod_search
from webhook.questions.live.live_pods import LivePod, compare_pod
from webhook.workloads.object import Object

pytest_plugins = ["tests.cluster.run_fixtures"]

WORKER: Final = {names.RUN: "r", names.ROLE: "worker"}
POLICIES: Final = policy_text(
    "pool", "match: {roles: [worker]}", "defaults: {nodeSelector: {pool: a}}"
)
NEWER: Final = json.dumps(
    {"set": "12ab", "policies": {"pool": ["newer[x]"]}, "newer": {"fields": ["of a version"]}}
)
# Bytes, of the annotations of one pod.
MOST: Final = 250_000


def apart() -> Iterator[dict[str, str]]:
    """Annotations of pods: each text once in each key whose form it has, many on one pod."""
    rest = [*hostile.TEXTS.items()]
    forms = [
        [text for name, text in rest if name.startswith(form) or ":" not in name]
        for form in ("stamp", "history", "file")
    ]
    columns = zip(*(form[:: len(form) // 60] for form in forms), strict=False)
    for stamp, history, file in columns:
        found = {names.PLACEMENT: stamp, names.HISTORY: history, names.LAST_APPLIED: file}
        if sum(len(text.encode()) for text in found.values()) < MOST:
            yield found
    for text in islice((text for name, text in rest if ":" not in name), 200):
        if len(text.encode()) < MOST // len(hostile.KEYS):
            # A mirror pod needs a node.
            yield {key: text for key in hostile.KEYS if key != names.MIRROR_POD}
        elif len(text.encode()) < MOST:
            yield {names.PLACEMENT: text}
    yield {names.PLACEMENT: NEWER}


@pytest.fixture
def pods(bare_space: Space) -> Space:
    """A namespace with a pod for each of them, and one beside them."""
    for at, found in enumerate(apart()):
        bare_space.create(pod(f"p-{at}", labels=WORKER, annotations=found))
    bare_space.create(pod("sound", labels=WORKER, nodeSelector={"pool": "b"}))
    return bare_space


def went_well(done: Result, *codes: int) -> Result:
    """It came to its end: no exception, and one of these exit codes."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in codes, done.output
    assert "Traceback" not in done.output
    return done


def test_every_look_at_all_pods_comes_to_its_end(pods: Space, tmp_path: Path) -> None:
    """And the pod of somebody else is among what it finds."""
    policies = tmp_path / "p.yaml"
    policies.write_text(POLICIES)
    for where in (("-n", pods.name), ("-A",)):
        done = went_well(pods.ask("pods", "--policies", policies, *where, "-o", "json"), 1)
        found = json.loads(done.stdout)
        named = [each["name"] for each in found["pods"] if each["namespace"] == pods.name]
        assert "sound" in named
        assert found["unjudged"] == 0
    listed = [f"pod/{each['metadata']['name']}" for each in pods.pods()]
    assert len(listed) > 80
    done = went_well(pods.ask("explain", *listed, "--policies", policies, "-o", "json"), 1)
    explained = json.loads(done.stdout)["objects"]
    assert [each["object"].lower() for each in explained] == listed
    mentions(went_well(pods.ask("explain", *listed, "--policies", policies), 1).stdout, "sound")
    for words in (("doctor",), ("policy", "list", "--policies", policies)):
        went_well(pods.ask(*words), 0, 1, 2)


def test_a_fault_of_ours_about_one_pod_is_a_finding_about_that_pod(
    bare_space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are judged, and the exit code is 2 if there is nothing else to say."""
    policies = tmp_path / "p.yaml"
    policies.write_text(POLICIES)
    for name in ("broken", "sound"):
        bare_space.create(pod(name, labels={names.RUN: "r"}))

    def judge(world: World, source: Object, templates: Any) -> LivePod:
        if source.name == "broken":
            raise KeyError("newer\x1b[2J")
        return compare_pod(world, source, templates)

    monkeypatch.setattr(one_pod, "FAULTS", (Exception,))
    monkeypatch.setattr(pod_search, "compare_pod", judge)
    monkeypatch.setattr(live_answers, "compare_pod", judge)
    words = ("pods", "--otherwise", "--policies", policies)
    found = went_well(bare_space.ask(*words), 2)
    mentions(found.stderr, "Pod/broken", bare_space.name, "KeyError", "newer\\x1b")
    assert "Pod/sound" not in found.stderr
    document = json.loads(went_well(bare_space.ask(*words, "-o", "json"), 2).stdout)
    assert (document["ofRuns"], document["judged"], document["unjudged"]) == (2, 1, 1)
    both = went_well(
        bare_space.ask("explain", "pod/broken", "pod/sound", "--policies", policies), 1
    )
    mentions(both.stdout, "Pod/sound")
    mentions(both.stderr, "Pod/broken", "KeyError")
    alone = went_well(bare_space.ask("explain", "pod/broken", "--policies", policies), 2)
    mentions(alone.stderr, "Pod/broken", "KeyError")


WORST: Final = {
    "a wait beyond all times": '{"fallback": {"spot": 1000000000000000000}}',
    "a class that is none": '{"fallback": {"\\u001b[2J No Class": 1}}',
    "many classes": json.dumps({"fallback": {f"c{at}": 1 for at in range(5000)}}),
    "a newer version": NEWER,
    "deep": '{"fallback": ' + hostile.deep() + "}",
    "brackets": "[" * 100_000,
    "numbers": f'{{"fallback": {{"spot": {hostile.DIGITS}}}}}',
}


def begin(space: Space, name: str, **spec: object) -> LiveRun:
    """A Run whose pods wait for a node, so that the controller reads how long they may; each has
    one of the worst stamps by now.
    """
    template = {"spec": {"nodeSelector": {"pool": "none"}, "containers": [CONTAINER]}}
    replicas = {"worker": {"count": len(WORST)}}
    space.create(run_manifest(name, template=template, replicas=replicas, **spec))
    run = LiveRun(space, name)

    def wait() -> bool:
        conditions = [each["status"].get("conditions", ()) for each in run.live().values()]
        return len(conditions) == len(WORST) and all(
            any(one.get("reason") == "Unschedulable" for one in each) for each in conditions
        )

    run.until("all pods wait", wait)
    time = hostile.TIMES["year 9999"]
    for at, text in enumerate(WORST.values()):
        found = {
            names.PLACEMENT: text,
            names.HISTORY: json.dumps({"asOf": time, "events": [{"class": "spot", "time": time}]}),
            names.AVOID_NODES: "," * 50_000 + "a b",
            names.ATTEMPT: hostile.DIGITS,
        }
        space.patch("pods", f"{name}-worker-{at}", {"metadata": {"annotations": found}})
    return run


def test_a_run_whose_pods_have_any_stamp_is_suspended_resumed_and_deleted(run_space: Space) -> None:
    run = begin(run_space, "r")
    mentions(went_well(run_space.ask("run", "status", "r"), 0, 1).stdout, "worker")
    went_well(run_space.ask("run", "suspend", "r"), 0)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not run.pods())
    went_well(run_space.ask("run", "resume", "r"), 0)
    run.until("all pods are back", lambda: len(run.live()) == len(WORST))
    run_space.patch("pods", "r-worker-0", {"metadata": {"annotations": {names.PLACEMENT: NEWER}}})
    went_well(run_space.ask("run", "delete", "r"), 0)
    eventually("the Run is gone", lambda: run_space.find(names.RUNS, "r") is None)


def test_a_run_whose_pods_have_any_stamp_ends_at_its_deadline(run_space: Space) -> None:
    run = begin(run_space, "late", activeDeadlineSeconds=10)
    run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "DeadlineExceeded"
