"""The demo's examples and its Run, with the explanation of each result.

Longer than 300 lines: the Run's pods are examples too, and the same code explains them.
"""

from __future__ import annotations

import copy
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook import names
from webhook.admission.arrival import Cluster
from webhook.cli.demo.text import Line, placement_lines
from webhook.cli.run.run_files import read_plans
from webhook.errors import FairleadError, UnreadableInput
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.run.plan import plan as make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.admission.decision import Result
    from webhook.cli.demo.stages import Loopback
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet
    from webhook.run.plan import Plan

_DATA: Final = Path(__file__).parent / "data"
POLICIES: Final = _DATA / "policies"
NAMESPACE_FILE: Final = _DATA / "namespace.yaml"
RUN_FILE: Final = _DATA / "run.yaml"
NAMESPACE: Final = "research"

# Kubernetes' annotation for a description of an object.
DESCRIPTION: Final = "kubernetes.io/description"
_PERSON: Final = "you@example.com"
# The tolerations that the DaemonSet controller adds (AddOrUpdateDaemonPodTolerations in
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
    """One object to apply: a v1.Pod, or a DaemonSet that creates pods."""

    manifest: JsonObject

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def title(self) -> str:
        """What the example shows, from the manifest's annotation."""
        return str(self.manifest["metadata"]["annotations"][DESCRIPTION])

    @property
    def by_daemon_set(self) -> bool:
        """True if a DaemonSet creates the pod."""
        return bool(self.manifest["kind"] == "DaemonSet")

    @property
    def user(self) -> str:
        """The user who creates the pod."""
        return names.DAEMON_SET_CONTROLLER if self.by_daemon_set else _PERSON

    def pod(self, node: str = "on-demand-0") -> JsonObject:
        """Return the pod to create; a DaemonSet's controller creates one for each `node`."""
        return _daemon_pod(self.manifest, node) if self.by_daemon_set else self.manifest


def read_examples() -> list[Example]:
    """Return the examples in the order of the output."""
    return [Example(manifest) for manifest in yaml.safe_load_all((_DATA / "pods.yaml").read_text())]


def save(folder: Path) -> None:
    """Write the demo's files into a new folder. Raises UnreadableInput if it exists."""
    try:
        shutil.copytree(_DATA, folder)
    except FileExistsError:
        raise UnreadableInput([f"{folder}: already exists; name a new folder"]) from None
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
    """The webhook and the offline engine decided differently on a pod."""


@dataclass(frozen=True)
class Admitted:
    """The answer. `pod` is the resulting pod; None if it was rejected with `message`.

    `sent` is the requested pod, as far as a client of the API server knows it.
    """

    sent: JsonObject
    pod: JsonObject | None
    message: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class AdmittedExample:
    """One example with its result and its explanation."""

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


def explain_example(
    example: Example,
    answer: Admitted,
    policies: PolicySet,
    namespace_labels: Mapping[str, str],
) -> AdmittedExample:
    """Return the answer with the explanation that `fairlead explain` gives for the same pod.

    Raises Disagreement if the webhook and the engine decide differently.
    """
    namespaces = {NAMESPACE: namespace_labels}
    world = World(
        policies,
        Cluster(),
        namespaces,
        None,
        configuration=None,
        classes={},
        plugins=UNREAD,
        nodes=None,
    )
    pod = answer.sent
    foreseen = world.evaluate(pod, NAMESPACE, led=False, user=example.user).decision
    stamped = foreseen.placement.annotations if foreseen.placement else {}
    wanted = stamped.get(names.PLACEMENT) if foreseen.allowed else None
    live = _stamp(answer.pod) if answer.pod else None
    if foreseen.allowed != (answer.pod is not None) or live != wanted:
        raise Disagreement(
            f"{example.name}: the webhook answers {live or answer.message!r}, but the same engine"
            f" offline {wanted or foreseen.reason!r}: this is a bug of Fairlead, please report it"
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
class Member:
    """One replica: its rank, of `size`."""

    shown: AdmittedExample
    rank: str
    size: str

    @property
    def policies(self) -> list[str]:
        """The policies that set one of its fields, in order."""
        return list(dict.fromkeys(one.policy for one in self.shown.why if one.outcome == "set"))

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "pod": self.shown.example.name,
            "rank": self.rank,
            "size": self.size,
            "result": self.shown.result,
            "policies": self.policies,
        }


@dataclass(frozen=True)
class DemoRun:
    """The Run with its result."""

    name: str
    title: str
    members: Sequence[Member]

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "pods": [member.document() for member in self.members],
        }


def run_demo(stage: Loopback, policies: PolicySet, namespace_labels: Mapping[str, str]) -> DemoRun:
    """Send the pods of the demo's Run to the webhook.

    Raises Disagreement if the engine decides differently on a planned pod.
    """
    (planned,) = read_plans([RUN_FILE], NAMESPACE, "")
    plan = make_plan(planned.run)
    answers = stage.run_plan(plan)
    members = []
    for pod in planned_pods(plan):
        example = Example(pod)
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        members.append(
            Member(
                explain_example(example, answers[example.name], policies, namespace_labels),
                env["RANK"],
                env["WORLD_SIZE"],
            )
        )
    title = (plan.run.metadata.annotations or {})[DESCRIPTION]
    return DemoRun(plan.run.name, title, members)


def planned_pods(plan: Plan) -> list[JsonObject]:
    """Return the pods that the controller creates, in the framework's order."""
    return [
        plan.pod(role, index, 0)
        for role, count in plan.gang.counts.items()
        for index in range(count)
    ]
