"""What is told of each policy, of all that was gathered."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.policies.policies_in_force import Row
from webhook.cli.policies.words import for_whom, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cli.policies.policies_in_force import PoliciesInForce


class Skew(NamedTuple):
    """Whether replicas serve one set: `hashes` are theirs, `expected` that of the documents.

    `expected` is empty if there is nothing to compare them with.
    """

    hashes: tuple[str, ...]
    expected: str

    @property
    def same(self) -> bool:
        """Whether they all serve the same, and what they should."""
        wanted = {self.expected} if self.expected else set(self.hashes[:1])
        return bool(self.hashes) and set(self.hashes) == wanted


def rows(gathered: PoliciesInForce) -> list[Row]:
    """A row for each policy, in their order."""
    touched = Counter(name for pod in gathered.pods for name in pod.stamped)
    matching = Counter(name for pod in gathered.pods for name in pod.matching)
    templates = Counter(name for each in gathered.templates for name in each.matching)
    ordered = sorted(gathered.models.values(), key=lambda each: (-each.spec.priority, each.name))
    return [
        Row(
            each.name,
            each.spec.priority,
            where(each),
            for_whom(each),
            gathered.accepted.get(each.name),
            touched[each.name],
            matching[each.name],
            templates[each.name],
            gathered.counts.get(each.name),
        )
        for each in ordered
    ]


def since(found: Sequence[Row]) -> str:
    """Since when matches are known of all of these policies; empty if of one nobody knows."""
    times = [row.counted.since if row.counted else "" for row in found]
    return max(times, default="") if all(times) else ""


def skew(gathered: PoliciesInForce) -> Skew | None:
    """Whether replicas serve one set; None if nobody can say."""
    if gathered.served is None:
        return None
    known = gathered.policies.hash[:HASH_LENGTH] if gathered.policies else ""
    return Skew(tuple(each.hash for each in gathered.served), known if gathered.compare else "")
