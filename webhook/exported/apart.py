"""Whether two policies can match one pod, as far as their match blocks tell it at sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.conditions import is_glob
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from webhook.policy.match_model import Match


def never_together(one: Match, other: Match) -> bool:
    """Whether no pod can match both: a condition of each wants what the other's rules out."""
    wanted = dict(_wanted(one))
    return any(
        key in wanted and not set(wanted[key]) & set(values) for key, values in _wanted(other)
    )


def _wanted(match: Match) -> Iterator[tuple[tuple[str, str], Collection[object]]]:
    """What must be one of some values, with the values."""
    for name in ("kinds", "frameworks", "roles", "replica_indexes"):
        if getattr(match, name):
            yield (name, ""), getattr(match, name)
    if match.coordinator is not None:
        yield ("coordinator", ""), [match.coordinator]
    if match.namespaces and not any(map(is_glob, match.namespaces)):
        yield ("namespaces", ""), match.namespaces
    for name in ("pod_selector", "namespace_selector"):
        selector = getattr(match, name)
        if selector is not None:
            for key, values in compile_selector(selector).required_pairs:
                yield (name, key), values
