"""Random workloads on a real cluster: what is answered beforehand, and where their pods then are.

`fairlead explain` is asked of the files of each workload. Then it is created, its own controller
makes its pods, and the scheduler finds nodes for them, with admission plugins on and off.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from tests.agreement.differential import DEFAULT_CLASS, PRIORITIES, WITH
from tests.agreement.dry_runs import examined
from tests.agreement.test_differential import policy_files
from tests.agreement.test_evaluation import RUNTIME
from tests.cluster.paths import path
from tests.cluster.spaces import Running
from tests.control_planes import StartControlPlane
from tests.fuzz.drawn import drawn
from tests.laws.strategies import RUNTIME_CLASS, one, pods
from webhook.cli import fairlead
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_webhook
from webhook.sandbox.simulated_nodes import Pool, Taint

Json = dict[str, Any]
WORKLOADS: Final = int(os.environ.get("FAIRLEAD_TRIAL_WORKLOADS", "80"))
PER_ROUND: Final = 10
GPU: Final = "nvidia.com/gpu"
COUNT: Final = 2
# How long nothing may happen before everything has happened, in seconds.
QUIET_SECONDS: Final = 3.0
SETTLING_SECONDS: Final = 60.0
RANGE: Final = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "defaults"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "64Mi"}}]},
}
POOLS: Final = [
    Pool(
        name=f"n{number}",
        count=1,
        labels=labels,
        taints=[Taint(key=key, value=value, effect="NoSchedule") for key, value in taints.items()],
        capacity={"cpu": "64", "memory": "256Gi", "pods": "250"} | ({GPU: "64"} if gpus else {}),
    )
    for number, (labels, taints, gpus) in enumerate(
        (
            ({"pool": "a", "zone": "a", "spot": "false", "gen": "1"}, {}, False),
            ({"pool": "a", "zone": "b", "gen": "7"}, {}, False),
            ({"pool": "b", "zone": "c", "spot": "false", "gen": "2"}, {"maintenance": ""}, False),
            ({"pool": "b", "zone": "a", "spot": "true", "gen": "7"}, {"spot": "true"}, False),
            ({"zone": "c", "spot": "true", "gen": "2"}, {"spot": "true"}, False),
            ({"pool": "a", "zone": "b", "gen": "7"}, {GPU: "true"}, True),
            ({"pool": "b", "spot": "true", "gen": "7"}, {GPU: "true", "spot": "true"}, True),
        )
    )
]
PLUGINS: Final = (
    (),
    ("ExtendedResourceToleration",),
    ("PodTolerationRestriction", "ExtendedResourceToleration"),
)
KINDS: Final = {
    "Pod": ("v1", "pods"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "Deployment": ("apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "Job": ("batch/v1", "jobs"),
}


@st.composite
def workloads(draw: st.DrawFn) -> Json:
    """A workload of one of the kinds, without its name."""
    pod = draw(pods())
    spec = {key: value for key, value in pod["spec"].items() if key != "priority"}
    if spec.get("serviceAccountName", "default") != "default":
        del spec["serviceAccountName"]
    requests = draw(one({}, {}, {"cpu": "100m"}, {"cpu": "100"}, {GPU: "1"}, {GPU: "0"}))
    spec["containers"][0]["resources"] = {"limits": requests} if requests else {}
    if draw(st.integers(0, 5)) == 0:
        spec["runtimeClassName"] = RUNTIME_CLASS
    kind = draw(one(*KINDS, "Deployment", "Job"))
    metadata = {key: pod["metadata"].get(key) or {} for key in ("labels", "annotations")}
    version = KINDS[kind][0]
    if kind == "Pod":
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    template = {"metadata": metadata, "spec": spec}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        indexed = draw(one("Indexed", "NonIndexed"))
        about = {"parallelism": COUNT, "completions": COUNT, "completionMode": indexed}
    else:
        about = {} if kind == "DaemonSet" else {"replicas": COUNT}
    if kind == "StatefulSet":
        about |= {"podManagementPolicy": "Parallel", "serviceName": "s"}
    whole = {**about, "template": template}
    return {"apiVersion": version, "kind": kind, "metadata": {}, "spec": whole}


def named(workload: Json, name: str, namespace: str) -> Json:
    """The workload with a name, by which its pods are known; changed in place."""
    workload["metadata"] |= {"name": name, "namespace": namespace}
    spec = workload["spec"]
    of_pods = spec["template"]["metadata"] if "template" in spec else workload["metadata"]
    of_pods["labels"]["trial"] = name
    if "template" in spec and workload["kind"] != "Job":
        spec["selector"] = {"matchLabels": {"trial": name}}
    return workload


@pytest.fixture(params=PLUGINS, ids=lambda plugins: "+".join(plugins) or "none")
def plugins(request: pytest.FixtureRequest) -> Sequence[str]:
    """The admission plugins that the API server runs beside its usual ones."""
    chosen: Sequence[str] = request.param
    return chosen


@pytest.fixture
def plane(start_control_plane: StartControlPlane, plugins: Sequence[str]) -> ControlPlane:
    """A cluster of this test's own, with nodes of the small world of labels."""
    enabled = [f"--enable-admission-plugins={','.join(plugins)}"] if plugins else []
    made = start_control_plane(Settings(pools=POOLS, extra_arguments={"kube-apiserver": enabled}))
    for name, labels in WITH.items():
        made.create_namespace(name, labels)
        made.api.create(path("limitranges", namespace=name), RANGE)
    for name, (value, preemption) in PRIORITIES.items():
        about = {"value": value, "preemptionPolicy": preemption}
        default = {"globalDefault": name == DEFAULT_CLASS}
        made.api.create(path("priorityclasses"), {"metadata": {"name": name}, **about, **default})
    made.api.create(path("runtimeclasses"), RUNTIME)
    made.api.patch("/api/v1/nodes/n2-0", {"spec": {"unschedulable": True}})
    return made


@dataclass(frozen=True)
class Case:
    """A workload, what was answered of it, and what came of it."""

    workload: Json
    answers: Sequence[Json]
    stored: Sequence[Json]
    failed: str
    policies: str

    def __str__(self) -> str:
        parts = {
            "workload": self.workload,
            "answers": self.answers,
            "failed": self.failed,
            "pods": [about(pod) for pod in self.stored],
        }
        texts = [f"{name}: {json.dumps(part)}" for name, part in parts.items()]
        return "\n".join([*texts, f"policies: {self.policies}"])

    def examine(self) -> str:
        return judged(self.workload["kind"], self.answers, self.stored, self.failed)


@dataclass(frozen=True)
class Trial:
    """A cluster with the webhook, and the folder of what commands are given."""

    plane: ControlPlane
    running: Running
    plugins: Sequence[str]
    folder: Path


def cases(trial: Trial, text: str, namespace: str, made: Mapping[str, Json]) -> Iterator[Case]:
    """Create the workloads under these policies; tell what came of each."""
    trial.running.serve(text)
    here = {name: named(workload, name, namespace) for name, workload in made.items()}
    answers = answered(trial.folder, list(here.values()), trial.plugins)
    failed = {name: store(trial.plane, workload) for name, workload in here.items()}
    # Of others that are not stored the author is told at once, whatever policies do.
    asked = {
        name: workload
        for name, workload in here.items()
        if not failed[name] or workload["kind"] == "Pod"
    }
    created = {name: workload for name, workload in asked.items() if not failed[name]}
    stored, events = settled(trial.plane, namespace, created)
    for name, workload in asked.items():
        why = failed[name] or events.get(name, "")
        yield Case(workload, answers[name], stored.get(name, []), why, text)
    for name, workload in created.items():
        there = path(KINDS[workload["kind"]][1], name, namespace=namespace)
        trial.plane.api.call("DELETE", f"{there}?propagationPolicy=Background")


def about(pod: Json) -> Json:
    """What matters of a stored pod."""
    conditions = pod.get("status", {}).get("conditions", [])
    scheduled = [each.get("message") for each in conditions if each["type"] == "PodScheduled"]
    return {"name": pod["metadata"]["name"], "spec": pod["spec"], "scheduled": scheduled}


def judged(kind: str, answers: Sequence[Json], stored: Sequence[Json], failed: str) -> str:
    """What became of the pods. Raises AssertionError if the answers said otherwise.

    `stored`: the pods; `failed`: why one is not made, or empty.
    """
    taken = [each for each in answers if each["result"] != "rejected" and not each["refusals"]]
    if not taken:
        assert not stored, "made, and it was said that they are not"
        return "not made"
    if len(taken) < len(answers):
        return "partly made"
    assert not failed, "not made, and it was said that they are"
    surveys = [each["nodes"]["after"] or each["nodes"]["before"] for each in taken]
    admitting = {node for survey in surveys for node in survey["admitted"]}
    on = {pod["spec"]["nodeName"] for pod in stored if pod["spec"].get("nodeName")}
    assert on <= admitting, f"on {sorted(on - admitting)}, which were said not to admit them"
    if any(each["nodes"]["unknown"] or each["nodes"]["notJudged"] for each in taken):
        return "with nodes, maybe"
    if any(pod["spec"]["schedulerName"] != "default-scheduler" for pod in stored):
        return "left to another scheduler"
    if any(pod["spec"].get("schedulingGates") for pod in stored):
        return "held by a gate"
    if kind == "DaemonSet":
        assert on == admitting, f"not on {sorted(admitting - on)}, which were said to admit them"
        return "on nodes" if on else "without a node"
    waiting = [pod for pod in stored if not pod["spec"].get("nodeName")]
    assert not (waiting and admitting), f"waiting, and {sorted(admitting)} were said to admit them"
    return "on nodes" if on else "without a node"


def answered(folder: Path, made: Sequence[Json], plugins: Sequence[str]) -> dict[str, list[Json]]:
    """What `explain` says of each of the workloads, from files alone."""
    file = folder / "workloads.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in made))
    world = ["--nodes", folder / "nodes.yaml", "--namespaces", folder / "world.yaml"]
    options = ["--policies", folder / "policies", *world, "--plugins", ",".join(plugins) or "none"]
    arguments = ["explain", "-f", file, *options, "-o", "json"]
    printed = CliRunner().invoke(fairlead, list(map(str, arguments)))
    found: dict[str, list[Json]] = {each["metadata"]["name"]: [] for each in made}
    for each in json.loads(printed.stdout)["pods"]:
        found[each["object"].partition("/")[2]].append(each)
    return found


def store(plane: ControlPlane, workload: Json) -> str:
    """Create it; return why the API server does not take it, if it does not."""
    collection = path(KINDS[workload["kind"]][1], namespace=workload["metadata"]["namespace"])
    status, body = plane.api.call("POST", collection, workload)
    return "" if status == 201 else str(body["message"])


def settled(
    plane: ControlPlane, namespace: str, made: Mapping[str, Json]
) -> tuple[dict[str, list[Json]], dict[str, str]]:
    """The pods of each workload, and why one is not made, once nothing more happens."""
    deadline, quiet_since, before = time.monotonic() + SETTLING_SECONDS, time.monotonic(), None
    while True:
        stored: dict[str, list[Json]] = {name: [] for name in made}
        for pod in plane.api.get(path("pods", namespace=namespace))["items"]:
            stored.setdefault(pod["metadata"]["labels"].get("trial", ""), []).append(pod)
        failed = {}
        for event in plane.api.get(path("events", namespace=namespace))["items"]:
            name = event["involvedObject"]["name"]
            if event["reason"] == "FailedCreate" and name.startswith("t"):
                failed[name.split("-")[0]] = event["message"]
        now = (
            [
                [pod["spec"].get("nodeName"), conditions(pod)]
                for each in stored.values()
                for pod in each
            ],
            failed,
        )
        if now != before:
            before, quiet_since = now, time.monotonic()
        accounted = all(
            failed.get(name)
            or workload["kind"] == "DaemonSet"
            or len(stored[name]) >= wanted(workload)
            for name, workload in made.items()
        )
        if accounted and time.monotonic() - quiet_since > QUIET_SECONDS:
            return stored, failed
        if time.monotonic() > deadline:
            return stored, failed
        time.sleep(0.3)


def wanted(workload: Json) -> int:
    """How many pods it has."""
    return 1 if workload["kind"] == "Pod" else COUNT


def conditions(pod: Json) -> Json:
    """Whether it has a node, as the scheduler said."""
    return {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", [])}


def test_what_is_answered_of_a_workload_is_what_the_cluster_does(
    plane: ControlPlane, plugins: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether its pods are made, and on which nodes they are put."""
    folder = tmp_path / "policies"
    folder.mkdir()
    options = ("--poll-interval", "0.1", "--nodes")
    running = Running(start_webhook(plane, folder, namespaces=tuple(WITH), options=options), folder)
    world = [plane.api.get(path("namespaces", name)) for name in WITH]
    world += [plane.api.get(path("priorityclasses", name)) for name in PRIORITIES]
    world += [RUNTIME, *({**RANGE, "metadata": {"name": "d", "namespace": each}} for each in WITH)]
    nodes = {"apiVersion": "v1", "kind": "List", "items": plane.api.get("/api/v1/nodes")["items"]}
    for node in nodes["items"]:
        node |= {"apiVersion": "v1", "kind": "Node"}
    kinds = ["Namespace"] * len(WITH) + ["PriorityClass"] * len(PRIORITIES)
    versions = {"Namespace": "v1", "PriorityClass": "scheduling.k8s.io/v1"}
    for kind, each in zip(kinds, world, strict=False):
        each |= {"apiVersion": versions[kind], "kind": kind}
    (tmp_path / "world.yaml").write_text("\n---\n".join(map(json.dumps, world)))
    (tmp_path / "nodes.yaml").write_text(json.dumps(nodes))
    made = drawn(workloads(), WORKLOADS)
    with capsys.disabled():
        became = examined(
            case
            for number, text in enumerate(policy_files(-(-len(made) // PER_ROUND)))
            for case in cases(
                Trial(plane, running, plugins, tmp_path),
                text,
                list(WITH)[number % len(WITH)],
                {
                    f"t{number}x{nth}": workload
                    for nth, workload in enumerate(made[number * PER_ROUND :][:PER_ROUND])
                },
            )
        )
    for result in ("on nodes", "without a node"):
        assert became[result], became
