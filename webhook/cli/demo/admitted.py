"""What became of one example, wherever the demo runs, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.cli.demo.examples import NAMESPACE
from webhook.cli.demo.placement_text import Line, placement_lines
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.admission.decision import Result
    from webhook.cli.demo.examples import Example
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet


class Disagreement(FairleadError):
    """The webhook and the engine offline say different things of one pod."""


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
class Shown:
    """One example, and all that is to be said of it."""

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
) -> Shown:
    """The answer beside what `fairlead explain` says of the same pod.

    Raises Disagreement if the two are not one: nobody could foresee anything then.
    """
    arrival = Arrival(answer.sent, NAMESPACE, namespace_labels, example.user)
    foreseen = decide(arrival, policies, Cluster())
    stamped = foreseen.placement.annotations if foreseen.placement else {}
    wanted = stamped.get(names.PLACEMENT) if foreseen.allowed else None
    seen = _stamp(answer.pod) if answer.pod else None
    if foreseen.allowed != (answer.pod is not None) or seen != wanted:
        raise Disagreement(
            f"{example.name}: the webhook says {seen or answer.message!r}, and the same engine"
            f" offline {wanted or foreseen.reason!r}: that is a bug of Fairlead's, please report it"
        )
    return Shown(
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
