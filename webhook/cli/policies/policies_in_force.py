"""Everything that is known of the policies in force: what they say, touch and have counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.policy.model import PlacementPolicy
    from webhook.policy.policy_set import PolicySet


class LivePod(NamedTuple):
    """A live pod of a run. `stamped` are the policies that took part when it was created.

    `matching` are those that match it now and would take part, `failed` why those that took part
    do not any more, `excepted` the exceptions, by policy, by which one that matches takes no part.
    """

    namespace: str
    name: str
    stamped: tuple[str, ...]
    matching: frozenset[str]
    failed: Mapping[str, str]
    excepted: Mapping[str, str] = {}


class Template(NamedTuple):
    """What makes pods, and the policies that match some of them."""

    namespace: str
    title: str
    matching: frozenset[str]


class Served(NamedTuple):
    """A replica of the webhook, and the hash of the set that it serves, cut as stamps have it."""

    replica: str
    hash: str


class Count(NamedTuple):
    """Of one policy. Times are RFC 3339; empty where nobody knows, or it never matched."""

    decided: int
    last_match: str
    since: str


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """All of it.

    policies: None if the documents are no set; `wrong` says why
    models:   the policies as they are written, by name
    accepted: by policy, why it is not accepted, or an empty text; absent where nobody has said
    counts:   by policy; absent where nobody has counted
    served:   None if nobody could say
    compare:  whether replicas should serve the very set of `policies`
    """

    source: str
    policies: PolicySet | None
    wrong: Sequence[str] = ()
    models: Mapping[str, PlacementPolicy] = field(default_factory=dict)
    accepted: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Count] = field(default_factory=dict)
    served: Sequence[Served] | None = None
    compare: bool = True
    pods: Sequence[LivePod] = ()
    templates: Sequence[Template] = ()
    notes: Sequence[str] = ()


class Row(NamedTuple):
    """What is told of one policy. `counted` is None where nobody has counted."""

    name: str
    priority: int
    enforced: str
    match: str
    accepted: str | None
    touched: int
    matching: int
    templates: int
    counted: Count | None

    @property
    def never(self) -> bool:
        """Whether nothing is known that it ever matched."""
        counted = self.counted is not None and (self.counted.decided or self.counted.last_match)
        return not (self.touched or self.matching or self.templates or counted)

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "priority": self.priority,
            "enforced": self.enforced,
            "match": self.match,
            "accepted": None if self.accepted is None else not self.accepted,
            "reason": self.accepted or None,
            "podsTouched": self.touched,
            "podsMatching": self.matching,
            "templatesMatching": self.templates,
            "decided": self.counted.decided if self.counted else None,
            "lastMatch": (self.counted.last_match or None) if self.counted else None,
            "since": (self.counted.since or None) if self.counted else None,
        }
