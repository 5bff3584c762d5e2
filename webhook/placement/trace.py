"""The record of a decision: for every field who set it, who lost, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from webhook.placement.settings import Part, PlacementSetting

Outcome: TypeAlias = Literal[
    "set",  # the pod's field is changed
    "kept",  # the pod has what is wanted already, or its own word wins over a default
    "lost",  # an earlier policy decides this key
    "dropped",  # the setting cannot stand beside an earlier one, or beside the pod's own word
    "removed",  # a word of the pod's own that the policy overrules
    "skipped",  # the field is left alone in this pod
    "rejected",  # the pod is refused for this
]

# What leaves a setting of a policy without any effect on the pod.
WITHOUT_EFFECT: Final[frozenset[Outcome]] = frozenset({"lost", "dropped", "skipped"})

WARNING_LIMIT = 119  # kubectl shows a warning in one line; design: each under 120 characters


class Entry(NamedTuple):
    """One line: `policy` is empty where the pod's own annotation asks."""

    field: str
    policy: str
    part: Part | Literal["pod"]
    outcome: Outcome
    reason: str


def entry(setting: PlacementSetting, outcome: Outcome, reason: str) -> Entry:
    """A line about one setting."""
    return Entry(setting.field, setting.policy, setting.part, outcome, reason)


QUOTE_LIMIT = 80


def quoted(value: object) -> str:
    """A value as a message shows it, cut: a pod's author chooses how long it is."""
    return shortened(repr(value[: QUOTE_LIMIT + 1] if isinstance(value, str) else value))


def shortened(text: str) -> str:
    """The text, or its beginning where it is long."""
    return text if len(text) <= QUOTE_LIMIT else text[:QUOTE_LIMIT] + "…"


def quoted_both(one: object, other: object) -> tuple[str, str]:
    """Two different values as `quoted` shows them, cut so that the texts differ."""
    texts = quoted(one), quoted(other)
    return texts if texts[0] != texts[1] else apart(repr(one), repr(other), QUOTE_LIMIT)


def apart(one: str, other: str, most: int) -> tuple[str, str]:
    """Two texts, each cut to `most` characters around the first place where they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = alike - most // 4 if alike >= most - 1 else 0
    return _window(one, start, most), _window(other, start, most)


def _window(text: str, start: int, most: int) -> str:
    before, after = "…" if start else "", "…" if start + most < len(text) else ""
    return f"{before}{text[start : start + most]}{after}"


def warning(text: str) -> str:
    """`text` as a warning of the response, cut to its limit."""
    return text if len(text) <= WARNING_LIMIT else text[: WARNING_LIMIT - 1] + "…"
