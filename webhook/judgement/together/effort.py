"""The effort of a check, in steps: its budget, what a fold costs, and the warning at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

from webhook.placement import node_affinity
from webhook.policy.findings import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding

STEPS_UNTIL_PAUSE: Final = 4_000
UNFINISHED: Final = (
    "it is not checked together with all other policies: they are too many, or too large, to check "
    "at once; the condition Satisfiable has the result once the controller has checked the rest, "
    "and `fairlead check` checks all"
)


class Effort:
    """A budget of steps; one step takes some 5 µs.

    What is remembered from before costs as much as what is computed. So it depends on the policies
    alone what is checked, and neither on time nor on what was asked before.
    """

    def __init__(self, most: float, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called each STEPS_UNTIL_PAUSE steps; what it raises ends the check."""
        self.left = most
        self._pause = pause
        self._pause_at = most - STEPS_UNTIL_PAUSE
        self.refused = 0

    def spend(self, steps: int = 1) -> bool:
        """Spend steps; return False if too few are left. Nothing can be spent afterwards."""
        self.left -= steps
        if self.left <= self._pause_at:
            self._pause_at = self.left - STEPS_UNTIL_PAUSE
            self._pause()
        if self.left < 0:
            self.refused += 1
            self.left = min(self.left, -1)
        return self.left >= 0

    @property
    def is_over(self) -> bool:
        """Whether the budget was exceeded."""
        return self.left < 0


class ConditionSize(NamedTuple):
    """The number of terms of a condition on nodes, and of requirements and values in all of them.

    settings: of how many settings it is made
    """

    terms: int = 1
    requirements: int = 0
    values: int = 0
    settings: int = 0

    @classmethod
    def of(cls, terms: Sequence[Term]) -> Self:
        """Return the size of these terms."""
        listed = [
            requirement for term in terms for requirement in term.get("matchExpressions") or ()
        ]
        values = sum(len(requirement.get("values") or ()) for requirement in listed)
        return cls(len(terms), len(listed), values, 1)

    def beside(self, other: ConditionSize) -> ConditionSize:
        """Return the size of both together. Their terms multiply; above a limit it is refused."""
        return ConditionSize(
            min(self.terms * other.terms, node_affinity.MAX_TERMS),
            min(
                self.terms * other.requirements + self.requirements * other.terms,
                node_affinity.MAX_REQUIREMENTS,
            ),
            min(self.terms * other.values + self.values * other.terms, node_affinity.MAX_VALUES),
            self.settings + other.settings,
        )

    @property
    def steps(self) -> int:
        """The steps of a fold that has it: it is combined again for each setting."""
        size = self.terms + self.requirements // 2 + self.values // 4
        return size * (1 + self.settings) // 3


def fold_steps(conditions: Iterable[ConditionSize]) -> int:
    """Return the steps of combining what policies require of nodes."""
    size = ConditionSize()
    for condition in conditions:
        size = size.beside(condition)
    return size.steps


def unfinished(policy: Policy) -> Finding:
    """Return the warning at a policy for which not everything was checked."""
    return policy.document.finding(
        ("spec",), UNFINISHED, "warning", about=Kind.NOT_CHECKED, kind=Kind.NOT_CHECKED
    )
