"""The trace of a decision: which policy set each field, which was overridden, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.shortening import apart, cut, fit

if TYPE_CHECKING:
    from webhook.placement.bundle import Bundle
    from webhook.placement.placement_setting import Part, PlacementSetting

Outcome: TypeAlias = Literal[
    "set",  # the pod's field is changed
    "kept",  # the pod already has the value, or its own value wins over a default
    "lost",  # an earlier policy decides this key
    "dropped",  # the setting conflicts with an earlier one, or with the pod's own fields
    "removed",  # the policy removes the pod's own value
    "skipped",  # the field is not changed in this pod
    "rejected",  # the pod is refused for this
]

# What leaves a setting of a policy without any effect on the pod.
WITHOUT_EFFECT: Final[frozenset[Outcome]] = frozenset({"lost", "dropped", "skipped"})
# What changes the pod.
EFFECTIVE: Final[frozenset[Outcome]] = frozenset({"set", "removed"})

WARNING_LIMIT = 119  # kubectl shows a warning in one line; design: each under 120 characters


class Entry(NamedTuple):
    """One line: `policy` is empty where the pod's own annotation asks."""

    field: str
    policy: str
    part: Part | Literal["pod"]
    outcome: Outcome
    reason: str


QUOTE_LIMIT = 80


def quoted(value: object) -> str:
    """Return a value for a message, cut, because a pod's author chooses its length."""
    text = repr(value[: QUOTE_LIMIT + 1] if isinstance(value, str) else value)
    return cut(text, QUOTE_LIMIT)


def quoted_both(value: object, other: object) -> tuple[str, str]:
    """Two different values as `quoted` shows them, cut so that the texts differ."""
    texts = quoted(value), quoted(other)
    return texts if texts[0] != texts[1] else apart(repr(value), repr(other), QUOTE_LIMIT)


def warning(text: str) -> str:
    """`text` as a warning of the response, cut to its limit."""
    return fit(text, WARNING_LIMIT)


@dataclass(slots=True)
class Ledger:
    """What grows during a merge and belongs to it alone.

    removed: by policy the tolerations that it takes from the pod, as texts
    """

    trace: list[Entry]
    warnings: list[str]
    rejections: list[str]
    removed: dict[str, list[str]] = field(default_factory=dict)

    def note(self, setting: PlacementSetting, outcome: Outcome, reason: str) -> None:
        if setting.origin:
            reason = f"{reason} (namespace label {setting.origin.label})"
        self.trace.append(Entry(setting.field, setting.policy, setting.part, outcome, reason))

    def warn(self, setting: PlacementSetting, outcome: Outcome, reason: str) -> None:
        """Record the outcome of a setting, and warn the client."""
        self.note(setting, outcome, reason)
        self.warnings.append(warning(f"policy {setting.policy}: {setting.written}: {reason}"))

    def warn_pod(self, field: str, outcome: Outcome, reason: str) -> None:
        """Record an outcome for the pod's own value, and warn the client."""
        self.trace.append(Entry(field, "", "pod", outcome, reason))
        self.warnings.append(warning(f"{field}: {reason}"))

    def reject(self, setting: PlacementSetting, reason: str) -> None:
        """Record that the pod cannot be admitted because of a setting."""
        self.note(setting, "rejected", reason)
        where = f"{setting.part}.{(setting.origin or setting).written}"
        self.rejections.append(f"policy {setting.policy}: {where}: {reason}")

    def skip_node_fields(self, bundle: Bundle, reason: str) -> None:
        """Record that settings of fields that choose a node are skipped."""
        lost = {(e.field, e.policy, e.part) for e in self.trace}
        for setting in bundle.settings:
            if (
                setting.row.chooses_node
                and (setting.field, setting.policy, setting.part) not in lost
            ):
                self.note(setting, "skipped", reason)
