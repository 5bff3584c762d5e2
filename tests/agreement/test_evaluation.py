"""What an evaluation says of random pods, held against a real API server with its plugins.

The cluster has a RuntimeClass that selects and tolerates, and LimitRanges that give defaults. A pod
that the evaluation admits is created, and one that it calls refused or rejected is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agreement.differential import DEFAULT_CLASS, WITH, WITHOUT, Json, apart
from tests.agreement.dry_runs import BothAnswers, dry_runs, examined
from tests.agreement.test_differential import policy_files
from tests.cluster.paths import path
from tests.cluster.spaces import ADMINISTRATOR, Running
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.fuzz.additions import SOUND, at, fixed
from tests.fuzz.drawn import drawn
from tests.fuzz.pods import whole_pods
from tests.laws.strategies import RUNTIME_CLASS
from webhook import names
from webhook.decision.arrival import Cluster, owned_by_daemon_set
from webhook.evaluation.plugins import inputs_among
from webhook.evaluation.world import World
from webhook.placement.plugin_tolerations import daemon_set_tolerations
from webhook.placement.pod import parse_pod
from webhook.placement.pod_requests import requests
from webhook.policy.load import load
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook

PODS = int(os.environ.get("FAIRLEAD_EVALUATED_PODS", "1600"))
ROUNDS = PODS // 80
RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": RUNTIME_CLASS},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "100m", "memory": "1Mi"}},
    "scheduling": {
        "nodeSelector": {"pool": "a"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    },
}
RANGES: list[Json] = [
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "64Mi"}}]},
    }
    for namespace in (WITHOUT, *WITH)
]
# Of tolerations, those that the API server gives every pod.
EVERY = frozenset({names.TAINT_NOT_READY, names.TAINT_UNREACHABLE})


@pytest.fixture
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """An API server of this test's own, which has heard of the class and the ranges."""
    made = apart(start_control_plane, {WITHOUT: {}, **WITH})
    made.api.delete(path("runtimeclasses", RUNTIME_CLASS))
    made.api.create(path("runtimeclasses"), RUNTIME)
    for each in RANGES:
        collection = path("limitranges", namespace=each["metadata"]["namespace"])
        made.api.create(collection, each)
    probe = {"runtimeClassName": RUNTIME_CLASS, "containers": [{"name": "m", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": probe}

    def heard() -> bool:
        status, found = made.api.call("POST", path("pods", namespace=WITHOUT) + "?dryRun=All", pod)
        spec = found.get("spec", {}) if isinstance(found, dict) else {}
        return status == 201 and bool(spec.get("nodeSelector") and requests(spec).get("memory"))

    eventually("plugins know the class and the ranges", heard)
    return made


@dataclass(frozen=True)
class Case(BothAnswers):
    """The answers, and what the evaluation is made of."""

    world: World
    text: str

    def __str__(self) -> str:
        return f"{super().__str__()}\npolicies: {self.text}"

    def examine(self) -> str:
        """Hold the evaluation against the API server; tell what became of the pod."""
        if not self.without.accepted:
            return "refused without us"
        found = self.world.evaluate(self.sent, self.namespace, led=False, user=ADMINISTRATOR)
        assert found.allowed == self.with_us.accepted, (found.decision.reason, found.refusals)
        if not found.allowed:
            return "rejected" if not found.decision.allowed else "refused"
        assert told(found.stored()) == told(self.with_us.body)
        return found.decision.result


def told(pod: Json) -> Json:
    """What decides about nodes in a pod."""
    placement = parse_pod(pod)
    return {
        "selector": placement.node_selector,
        "required": placement.required,
        "class": placement.runtime_class_name,
        # The API server drops what is empty.
        "tolerations": [
            {key: value for key, value in each.items() if value not in ("", None)}
            for each in placement.tolerations
            if each.get("key") not in EVERY
        ],
        "requests": requests(pod["spec"]),
    }


def as_its_controller_makes_it(spec: Json) -> None:
    """Give a DaemonSet's pod the tolerations of its controller, in place of its own for these."""
    more = daemon_set_tolerations(spec)
    keys = {each["key"] for each in more}
    own = [each for each in spec.get("tolerations") or () if each.get("key") not in keys]
    spec["tolerations"] = [*own, *more]


def cases(plane: ControlPlane, running: Running, pods: Sequence[Json]) -> Iterator[Case]:
    """All pods, a part of them under each of the sets."""
    size, served = len(pods) // ROUNDS, list(WITH)
    for number, text in enumerate(policy_files(ROUNDS)):
        running.serve(text)
        world = World(
            policies=load({"p.yaml": text.encode()}).policies,
            cluster=Cluster(DEFAULT_CLASS),
            namespaces={
                name: {**labels, "kubernetes.io/metadata.name": name}
                for name, labels in WITH.items()
            },
            now=None,
            configuration=None,
            classes=None,
            plugins=inputs_among([RUNTIME, *RANGES]),
            nodes=None,
            server=None,
            history=None,
        )
        part = pods[number * size : (number + 1) * size]
        answers = dry_runs(plane, part, lambda nth: (WITHOUT, served[nth % len(served)]))
        for nth, (sent, (without, with_us)) in enumerate(zip(part, answers, strict=True)):
            yield Case(sent, served[nth % len(served)], without, with_us, world, text)


def test_an_evaluation_says_what_the_api_server_does(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether it takes the pod, and what decides about its nodes then."""
    folder = tmp_path / "policies"
    folder.mkdir()
    classes = fixed((at("spec", "runtimeClassName"), RUNTIME_CLASS))
    pods = drawn(whole_pods(*SOUND, classes, classes, most=4, run=True), PODS)
    for pod in pods:
        del pod["spec"]["priority"]
        if owned_by_daemon_set(pod):
            as_its_controller_makes_it(pod["spec"])
    options = ("--poll-interval", "0.1")
    running = Running(start_webhook(plane, folder, namespaces=tuple(WITH), options=options), folder)
    with capsys.disabled():
        became = examined(cases(plane, running, pods))
    for result in ("placed", "rejected"):
        assert became[result], became
