"""The settings of a policy, with their places and ranks, to compare them with those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from webhook.placement import node_affinity
from webhook.placement.placement_setting import PARTS
from webhook.placement.settings import is_selector
from webhook.policy.node_settings import limits

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import Term
    from webhook.policy.findings import Path

# Values of a condition that are few; what conditions of more, or of several terms, have in common:
# no label's key begins with a slash, and no field is called so.
_FEW_VALUES: Final = 64
_TERMS: Final = "/terms"


class LocatedSetting(NamedTuple):
    """One setting, its place in its document, and the node labels and fields that it limits."""

    setting: PlacementSetting
    path: Path
    node_keys: frozenset[str]

    @property
    def conflict_keys(self) -> frozenset[str]:
        """What another setting must have in common with it to leave no node."""
        terms = limits(self.setting)
        values = sum(
            len(requirement.get("values") or ())
            for term in terms
            for requirement in (
                *(term.get("matchExpressions") or ()),
                *(term.get("matchFields") or ()),
            )
        )
        # Terms multiply, and may become too many to compute.
        return (
            self.node_keys | {_TERMS} if len(terms) > 1 or values > _FEW_VALUES else self.node_keys
        )


class RankedSetting(NamedTuple):
    """A setting of a policy. Of all settings, those of lower rank are folded first.

    identity: what another setting has in common with it if one may decide what the other sets
    terms: the condition on labels of nodes, unless it is one label with one value; `text` is equal
           if they are
    """

    rank: tuple[int, tuple[int, str]]
    policy: Policy
    located: LocatedSetting
    identity: Hashable
    terms: Sequence[Term]
    text: bytes


def locate(setting: PlacementSetting, path: Path) -> LocatedSetting:
    """Return a setting with its place, and the labels and fields of nodes that it limits."""
    return LocatedSetting(setting, path, _keys(limits(setting)))


def rank(policy: Policy, located: LocatedSetting) -> RankedSetting:
    """Return a setting of the policy with its rank."""
    setting = located.setting
    terms = limits(setting) if located.node_keys and not is_selector(setting) else ()
    order = PARTS.index(setting.part), policy.order
    return RankedSetting(order, policy, located, setting.identity, terms, orjson.dumps(terms))


def _keys(terms: Sequence[Term]) -> frozenset[str]:
    """Keys of labels and fields; no label's key begins with a slash."""
    fields = (
        f"/{requirement.get('key')}"
        for term in terms
        for requirement in term.get("matchFields") or ()
    )
    return node_affinity.keys(terms) | frozenset(fields)
