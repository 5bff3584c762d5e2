"""The demo's examples and its Run, and the explanation of what becomes of each.

Longer than 300 lines: the Run's pods are examples too, and are explained by the same code.
"""

from __future__ import annotations

import copy
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import yaml

from webhook import names
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.cli.demo.text import Line, placement_lines
from webhook.cli.run.run_files import read_plans
from webhook.errors import FairleadError, UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.admission.decision import Result
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet
    from webhook.run.plan import Plan

_DATA: Final = Path(__file__).parent / "data"
POLICIES: Final = _DATA / "policies"
NAMESPACE_FILE: Final = _DATA / "namespace.yaml"
RUN_FILE: Final = _DATA / "run.yaml"
NAMESPACE: Final = "research"

# Kubernetes' own annotation for a human's description of an object.
DESCRIPTION: Final = "kubernetes.io/description"
_PERSON: Final = "you@example.com"
# What the DaemonSet controller lets all of its pods tolerate (AddOrUpdateDaemonPodTolerations in
# k8s.io/kubernetes/pkg/controller/daemon/util).
_DAEMON_TOLERATIONS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


@dataclass(frozen=True)
class Example:
    """One object as it is applied: a v1.Pod, or a DaemonSet that makes pods."""

    manifest: JsonObject

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def title(self) -> str:
        """The description in the manifest."""
        return str(self.manifest["metadata"]["annotations"][DESCRIPTION])

    @property
    def by_daemon_set(self) -> bool:
        """Whether the pod is a DaemonSet's."""
        return bool(self.manifest["kind"] == "DaemonSet")

    @property
    def user(self) -> str:
        """Who asks the API server for the pod."""
        return names.DAEMON_SET_CONTROLLER if self.by_daemon_set else _PERSON

    def pod(self, node: str = "on-demand-0") -> JsonObject:
        """The pod that is asked for; a DaemonSet's controller makes one for each `node`."""
        return _daemon_pod(self.manifest, node) if self.by_daemon_set else self.manifest


def read_examples() -> list[Example]:
    """The examples, in the order in which they are shown."""
    return [Example(manifest) for manifest in yaml.safe_load_all((_DATA / "pods.yaml").read_text())]


def save(folder: Path) -> None:
    """Write all of the demo into a new folder. Raises UnreadableInput if there is one already."""
    try:
        shutil.copytree(_DATA, folder)
    except FileExistsError:
        raise UnreadableInput([f"{folder}: is there already; name a folder that is not"]) from None
    except OSError as error:
        raise UnreadableInput([f"{folder}: {error.strerror}"]) from error


def _daemon_pod(daemon_set: JsonObject, node: str) -> JsonObject:
    metadata = daemon_set["metadata"]
    template = copy.deepcopy(daemon_set["spec"]["template"])
    on_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    owner = {
        "apiVersion": daemon_set["apiVersion"],
        "kind": daemon_set["kind"],
        "name": metadata["name"],
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, metadata["name"])),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec = {
        **template["spec"],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [on_node]}]
                }
            }
        },
        "tolerations": [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
            for name, effect in _DAEMON_TOLERATIONS
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


class Disagreement(FairleadError):
    """The webhook and the engine offline decide differently on a pod."""


@dataclass(frozen=True)
class Admitted:
    """The answer. `pod` is the pod afterwards, None if it was refused with `message`.

    `sent` is the pod as it was asked for, as far as anybody outside of the API server can know.
    """

    sent: JsonObject
    pod: JsonObject | None
    message: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class AdmittedExample:
    """Explain one example."""

    example: Example
    result: Result
    before: Sequence[Line]
    after: Sequence[Line]
    answer: Admitted
    why: Sequence[Entry]
    reason: str

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "name": self.example.name,
            "title": self.example.title,
            "result": self.result,
            "before": [line._asdict() for line in self.before],
            "after": [line._asdict() for line in self.after],
            "message": self.answer.message,
            "warnings": list(self.answer.warnings),
            "why": [entry._asdict() for entry in self.why],
            "reason": self.reason,
        }


def explained(
    example: Example,
    answer: Admitted,
    policies: PolicySet,
    namespace_labels: Mapping[str, str],
) -> AdmittedExample:
    """The answer, with the explanation of `fairlead explain` for the same pod.

    Raises Disagreement if the two differ.
    """
    arrival = Arrival(answer.sent, NAMESPACE, namespace_labels, example.user)
    foreseen = decide(arrival, policies, Cluster())
    stamped = foreseen.placement.annotations if foreseen.placement else {}
    wanted = stamped.get(names.PLACEMENT) if foreseen.allowed else None
    live = _stamp(answer.pod) if answer.pod else None
    if foreseen.allowed != (answer.pod is not None) or live != wanted:
        raise Disagreement(
            f"{example.name}: the webhook says {live or answer.message!r}, and the same engine"
            f" offline {wanted or foreseen.reason!r}: that is a bug of Fairlead's, please report it"
        )
    return AdmittedExample(
        example,
        foreseen.result,
        placement_lines(answer.sent),
        placement_lines(answer.pod) if answer.pod else (),
        answer,
        [entry for entry in foreseen.trace if foreseen.allowed or entry.outcome == "rejected"],
        foreseen.reason,
    )


def _stamp(pod: JsonObject) -> str | None:
    return (pod["metadata"].get("annotations") or {}).get(names.PLACEMENT)


@dataclass(frozen=True)
class Ran:
    """What became of a Run: the answer for each pod, by name, and the run's phases, in order.

    Without a controller there are no phases.
    """

    answers: Mapping[str, Admitted]
    phases: Sequence[str] = ()


class Runner(Protocol):
    """Where the Run becomes pods."""

    def ran(self, plan: Plan) -> Ran:
        """Have its pods admitted."""


@dataclass(frozen=True)
class Member:
    """One replica: its rank among `size`, and the node that its pod runs on, if there are any."""

    shown: AdmittedExample
    rank: str
    size: str
    node: str

    @property
    def policies(self) -> list[str]:
        """Those that gave it something, in their order."""
        return list(dict.fromkeys(one.policy for one in self.shown.why if one.outcome == "set"))

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "pod": self.shown.example.name,
            "rank": self.rank,
            "size": self.size,
            "result": self.shown.result,
            "policies": self.policies,
            "node": self.node,
        }


@dataclass(frozen=True)
class DemoRun:
    """Explain the Run."""

    name: str
    title: str
    members: Sequence[Member]
    phases: Sequence[str]

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "pods": [member.document() for member in self.members],
            "phases": list(self.phases),
        }


def run_demo(stage: Runner, policies: PolicySet, namespace_labels: Mapping[str, str]) -> DemoRun:
    """Have the demo's Run become its pods.

    Raises Disagreement if what became of one is not what the engine foresees of the planned pod.
    """
    (planned,) = read_plans([RUN_FILE], NAMESPACE, "")
    plan = planned.plan
    ran = stage.ran(plan)
    members = []
    for pod in pods_of(plan):
        example = Example(pod)
        answer = ran.answers[example.name]
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        members.append(
            Member(
                explained(example, answer, policies, namespace_labels),
                env["RANK"],
                env["WORLD_SIZE"],
                answer.pod["spec"].get("nodeName", "") if answer.pod else "",
            )
        )
    title = (plan.run.metadata.annotations or {})[DESCRIPTION]
    return DemoRun(plan.run.name, title, members, ran.phases)


def pods_of(plan: Plan) -> list[JsonObject]:
    """The pods that the controller makes, in the framework's order."""
    return [
        plan.pod(role, index, 0)
        for role, count in plan.gang.counts.items()
        for index in range(count)
    ]
