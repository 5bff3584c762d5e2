"""How much work may go into holding policies against each other, and what is told where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.policy.findings import Kind

if TYPE_CHECKING:
    from webhook.policy.findings import Finding
    from webhook.policy.together.policy_view import Policy

UNFINISHED: Final = (
    "not all is checked: there are too many policies, or too large ones, to hold each against all "
    "others; make the largest smaller, or remove what is not needed"
)


class Effort:
    """How much may still be done; one step takes some 5 µs."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, steps: int = 1) -> bool:
        """Take so many steps; false if there are not as many left."""
        self.left -= steps
        return self.left >= 0

    @property
    def is_over(self) -> bool:
        """Whether more was wanted than there was."""
        return self.left < 0


def unfinished(policy: Policy) -> Finding:
    """The warning, at a policy that may have faults beside others which are not told."""
    return policy.document.finding(
        ("spec",), UNFINISHED, "warning", about=Kind.NOT_CHECKED, kind=Kind.NOT_CHECKED
    )
