"""Sums up what was recorded of policies under Audit, by namespace and policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.admission.audit import Outcome

# Of each row so many pods are named, and so many different reasons.
EXAMPLES: Final = 3


class Record(NamedTuple):
    """One or more pods that a policy under Audit matched.

    `pod` is the name of a pod, if it is known, and `reason` the message that its author would have
    got; both may be empty.
    """

    namespace: str
    policy: str
    outcome: Outcome
    pods: int = 1
    pod: str = ""
    reason: str = ""


@dataclass(slots=True)
class Row:
    """What one policy would have done in one namespace: numbers of pods, and some examples."""

    namespace: str
    policy: str
    same: int = 0
    changes: int = 0
    rejects: int = 0
    pods: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def matched(self) -> int:
        """How many pods it matched."""
        return self.same + self.changes + self.rejects


def tally(records: Iterable[Record]) -> Sequence[Row]:
    """A row for each namespace and policy, those that would reject most pods first."""
    rows: dict[tuple[str, str], Row] = {}
    for each in records:
        key = (each.namespace, each.policy)
        row = rows.setdefault(key, Row(*key))
        setattr(row, each.outcome, getattr(row, each.outcome) + each.pods)
        if each.outcome == "same":
            continue
        for text, examples in ((each.pod, row.pods), (each.reason, row.reasons)):
            if text and text not in examples and len(examples) < EXAMPLES:
                examples.append(text)
    return sorted(rows.values(), key=lambda r: (-r.rejects, -r.changes, r.namespace, r.policy))
