"""What one merge notes down as it goes: trace, warnings, rejections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.placement.trace import Entry, entry, warning

if TYPE_CHECKING:
    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.trace import Outcome


@dataclass(slots=True)
class Ledger:
    """Lists that grow during a merge and belong to it alone."""

    trace: list[Entry]
    warnings: list[str]
    rejections: list[str]

    def note(self, setting: PlacementSetting, outcome: Outcome, reason: str) -> None:
        """Record what became of a setting."""
        self.trace.append(entry(setting, outcome, reason))

    def warn(self, setting: PlacementSetting, outcome: Outcome, reason: str) -> None:
        """Record what became of a setting, and tell the person at kubectl."""
        self.trace.append(entry(setting, outcome, reason))
        self.warnings.append(warning(f"policy {setting.policy}: {setting.field}: {reason}"))

    def warn_pod(self, field: str, outcome: Outcome, reason: str) -> None:
        """Record, and tell, something about the pod's own word."""
        self.trace.append(Entry(field, "", "pod", outcome, reason))
        self.warnings.append(warning(f"{field}: {reason}"))

    def reject(self, setting: PlacementSetting, reason: str) -> None:
        """Record that the pod cannot be admitted because of a setting."""
        self.trace.append(entry(setting, "rejected", reason))
        self.rejections.append(f"policy {setting.policy}: {setting.part}.{setting.field}: {reason}")

    def skip_node_fields(self, bundle: Bundle, reason: str) -> None:
        """Record that the settings about fields that choose a node are left aside."""
        lost = {(e.field, e.policy, e.part) for e in self.trace}
        for setting in bundle.settings:
            if (
                setting.row.chooses_node
                and (setting.field, setting.policy, setting.part) not in lost
            ):
                self.note(setting, "skipped", reason)
