"""What policies are sure to require of nodes, whatever else matches a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.placement import node_affinity
from webhook.policy.together.policy_view import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Term
    from webhook.policy.together.policy_view import Policy


class Required(NamedTuple):
    """What a policy that is enforced everywhere requires of nodes, and which labels that limits."""

    policy: Policy
    keys: frozenset[str]
    settings: Sequence[PlacementSetting]

    @property
    def conditions(self) -> list[Sequence[Term]]:
        """The conditions that a node has to meet, each by one of its terms."""
        return [limits(setting) for setting in self.settings]


def required(policies: Sequence[Policy]) -> Iterator[Required]:
    """What those that are enforced everywhere are sure to require of nodes, in their order."""
    # Another requirement of such a class may have to give way.
    unsure = frozenset[str]().union(*(each.required_none for each in policies))
    for policy in policies:
        sure = [each for each in policy.sure if each.setting.field not in unsure]
        if sure:
            keys = frozenset[str]().union(*(each.limits for each in sure))
            yield Required(policy, keys, [each.setting for each in sure])


def possible(group: Iterable[Required]) -> bool:
    """Whether some node may meet all that a group requires."""
    conditions = (condition for each in group for condition in each.conditions)
    try:
        return node_affinity.satisfiable(node_affinity.conjunction(conditions), {})
    except node_affinity.TooManyTerms:
        return True
