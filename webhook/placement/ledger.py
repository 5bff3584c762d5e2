"""What one merge notes down as it goes: trace, warnings, rejections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.placement.trace import Entry, entry, warning

if TYPE_CHECKING:
    from webhook.placement.bundle import Bundle
    from webhook.placement.trace import Outcome
    from webhook.placement.wishes import Wish


@dataclass(slots=True)
class Ledger:
    """Lists that grow during a merge and belong to it alone."""

    trace: list[Entry]
    warnings: list[str]
    rejections: list[str]

    def note(self, wish: Wish, outcome: Outcome, reason: str) -> None:
        """Record what became of a wish."""
        self.trace.append(entry(wish, outcome, reason))

    def warn(self, wish: Wish, outcome: Outcome, reason: str) -> None:
        """Record what became of a wish, and tell the person at kubectl."""
        self.trace.append(entry(wish, outcome, reason))
        self.warnings.append(warning(f"policy {wish.policy}: {wish.field}: {reason}"))

    def warn_pod(self, field: str, outcome: Outcome, reason: str) -> None:
        """Record, and tell, something about the pod's own word."""
        self.trace.append(Entry(field, "", "pod", outcome, reason))
        self.warnings.append(warning(f"{field}: {reason}"))

    def reject(self, wish: Wish, reason: str) -> None:
        """Record that the pod cannot be admitted because of a wish."""
        self.trace.append(entry(wish, "rejected", reason))
        self.rejections.append(f"policy {wish.policy}: {wish.part}.{wish.field}: {reason}")

    def skip_node_fields(self, bundle: Bundle, reason: str) -> None:
        """Record that the wishes about fields that choose a node are left aside."""
        lost = {(e.field, e.policy, e.part) for e in self.trace}
        for wish in bundle.wishes:
            if wish.row.chooses_node and (wish.field, wish.policy, wish.part) not in lost:
                self.note(wish, "skipped", reason)
