"""The demo's Run: its pods, which policies placed them, and how far it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from webhook.cli.demo.admitted import Admitted, explained
from webhook.cli.demo.examples import DESCRIPTION, NAMESPACE, RUN_FILE, Example
from webhook.cli.run.run_files import read_plans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.cli.demo.admitted import Shown
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.run.plan import Plan


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

    shown: Shown
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
class ShownRun:
    """The Run, and all that is to be said of it."""

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


def shown_run(stage: Runner, policies: PolicySet, namespace_labels: Mapping[str, str]) -> ShownRun:
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
    return ShownRun(plan.run.name, title, members, ran.phases)


def pods_of(plan: Plan) -> list[JsonObject]:
    """The pods that the controller makes, in the framework's order."""
    return [
        plan.pod(role, index, 0)
        for role, count in plan.gang.counts.items()
        for index in range(count)
    ]
