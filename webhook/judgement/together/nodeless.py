"""Policies that together leave no node, though each alone leaves some.

This is what admission would report for a pod that all of them match. The finding is at the last
policy: an error if it is certain for each pod of one of them, else a warning with such a pod.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from webhook.judgement.together.contradicting import once_enforced
from webhook.judgement.together.policy_view import UNFINISHED
from webhook.judgement.together.witness import find
from webhook.placement.bundle import limits_nodes, node_settings
from webhook.placement.fold import fold
from webhook.policy.feasibility import Concern
from webhook.policy.findings import Kind
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods
from webhook.policy.node_settings import Makers, NodeMasks, tolerations_of
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Toleration
    from webhook.policy.findings import Severity

_NAMED: Final = 3
# Policies that are put together; of policies that leave the same nodes, how many are tried.
_MOST: Final = 4
_MOST_ALIKE: Final = 4
_EVERY_RUN: Final = MatchedPods(Match())


@dataclass(slots=True)
class _Group:
    """Policies that leave the same nodes, and tolerate the same."""

    mask: int
    tolerations: tuple[Toleration, ...]
    members: list[Policy] = field(default_factory=list)


def nodeless(
    policies: Sequence[Policy],
    chosen: Collection[Policy],
    classes: Mapping[str, CapacityClass],
    nodes: Sequence[Node],
    most: int,
) -> Iterator[Concern]:
    """Yield findings that involve the chosen policies; the policies are given in their order.

    At most `most` combinations are tested for the nodes that they leave.
    """
    if nodes:
        yield from _Search(policies, frozenset(chosen), classes, nodes, most).concerns()


class _Search:
    def __init__(
        self,
        policies: Sequence[Policy],
        chosen: frozenset[Policy],
        classes: Mapping[str, CapacityClass],
        nodes: Sequence[Node],
        most: int,
    ) -> None:
        self._nodes = NodeMasks(nodes)
        self._makers = Makers(classes.values(), nodes)
        self._chosen = chosen
        self._policies = policies
        self._total = len(nodes)
        self._left = most
        self._is_over = False
        # Tolerations that every pod gets count for each of them.
        self._tolerated = [
            toleration
            for each in policies
            if each.enforced_for(_EVERY_RUN)
            for toleration in tolerations_of(_standing([each]))
        ]
        self._groups = self._grouped(policies)

    def concerns(self) -> Iterator[Concern]:
        """Yield one finding for each policy, with those that leave no node together with it."""
        found: dict[tuple[Policy, Policy | None, bool], list[tuple[Policy, ...]]] = {}
        for policies in self._nodeless():
            # The last first: the finding is reported there.
            certain = next((e for e in reversed(policies) if self._is_certain(e, policies)), None)
            key = (policies[-1], certain, len(policies) > 2)
            found.setdefault(key, []).append(policies)
        for (policy, certain, _), sets in found.items():
            yield self._concern(policy, sets, certain)
        if self._is_over:
            last = next(each for each in reversed(self._policies) if each in self._chosen)
            what = f"with the nodes, {UNFINISHED}"
            yield Concern(
                "PlacementPolicy", last.name, ("spec",), what, "warning", Kind.NOT_CHECKED
            )

    def _grouped(self, policies: Sequence[Policy]) -> list[_Group]:
        found: dict[tuple[int, bytes], _Group] = {}
        for policy in policies:
            standing = _standing([policy])
            limits = [setting for setting in standing if limits_nodes(setting)]
            tolerations = tuple(tolerations_of(standing))
            mask = self._nodes.mask_for(limits)
            # A policy that leaves no node by itself is reported alone.
            if limits and policy.matches_something and self._open(mask, tolerations):
                key = (mask, orjson.dumps(tolerations))
                found.setdefault(key, _Group(mask, tolerations)).members.append(policy)
        return list(found.values())

    def _open(self, mask: int, tolerations: Iterable[Toleration]) -> int:
        return self._nodes.tolerated(mask, [*tolerations, *self._tolerated])

    def _left_by(self, groups: Iterable[_Group]) -> int:
        self._left -= 1
        mask = self._nodes.all
        tolerations: list[Toleration] = []
        for group in groups:
            mask &= group.mask
            tolerations += group.tolerations
        return self._open(mask, tolerations)

    def _nodeless(self) -> Iterator[tuple[Policy, ...]]:
        """Policies, each set in order; small sets first."""
        level: list[tuple[int, ...]] = [(at,) for at in range(len(self._groups))]
        for _ in range(2, _MOST + 1):
            longer: list[tuple[int, ...]] = []
            for ats in level:
                for at in range(ats[-1] + 1, len(self._groups)):
                    if self._left <= 0:
                        self._is_over = True
                        return
                    groups = [self._groups[each] for each in (*ats, at)]
                    if self._left_by(groups):
                        longer.append((*ats, at))
                    elif self._needs_all(groups):
                        yield from self._members(groups)
            level = longer

    def _needs_all(self, groups: Sequence[_Group]) -> bool:
        if len(groups) == 2:
            return True
        return all(self._left_by(g for g in groups if g is not each) for each in groups)

    def _members(self, groups: Sequence[_Group]) -> Iterator[tuple[Policy, ...]]:
        tried = (
            [each for each in group.members if each in self._chosen][:_MOST_ALIKE]
            + [each for each in group.members if each not in self._chosen][:_MOST_ALIKE]
            for group in groups
        )
        for some in itertools.product(*tried):
            if self._chosen.isdisjoint(some):
                continue
            policies = tuple(sorted(some, key=lambda each: each.order))
            if any(one.apart(two) for one, two in itertools.combinations(policies, 2)):
                continue
            if self._leave_none(policies) and (len(policies) == 2 or find(policies)):
                yield policies

    def _leave_none(self, policies: Sequence[Policy]) -> bool:
        """Return whether they leave no node after folding, where all of them match."""
        bundle = _bundle(policies)
        if bundle.contradictions:
            return False
        standing = _node_settings(bundle)
        limits = [setting for setting in standing if limits_nodes(setting)]
        tolerations = [*tolerations_of(standing), *self._tolerated]
        if self._open(self._nodes.mask_for(limits), tolerations):
            return False
        return not self._makers.makers_for(limits, tolerations)

    def _is_certain(self, one: Policy, policies: Sequence[Policy]) -> bool:
        """Return whether it holds for each pod of one of the policies, which is enforced itself.

        All the others are enforced for each of these pods, and no further policy restricts nodes
        for some of them, because that may override these settings, or allow nodes.
        """
        if not one.enforced or not all(each.outruns(one) for each in policies):
            return False
        beside = (each for each in self._policies if each not in policies and not each.apart(one))
        return not any(_concerns_nodes(each) for each in beside)

    def _concern(
        self, policy: Policy, sets: Sequence[tuple[Policy, ...]], certain: Policy | None
    ) -> Concern:
        others = [each for some in sets for each in some if each is not policy]
        names = [repr(each.name) for each in dict.fromkeys(others)]
        kind = "policy" if len(names) == 1 else "policies"
        together = len(sets[0]) > 2 or len(names) == 1
        beside = f"{kind} {first_few(names, _NAMED)}"
        what = f"leaves none of the {self._total} nodes together with {beside}"
        if not together:
            what = f"leaves none of the {self._total} nodes together with any of {beside}"
        if certain:
            which = "it" if certain is policy else f"policy {certain.name!r}"
            what += f": every pod that {which} matches stays Pending"
        elif pod := find(sets[0]):
            what += f": a pod that both match stays Pending, such as one {pod}"
            if len(sets[0]) > 2:
                what = what.replace(" both match ", " all of them match ")
        else:
            what += ": a pod that both match stays Pending"
        what += once_enforced([policy, *others])
        limiting = [located.path for located in policy.settings if located.limits]
        path = limiting[0] if len(limiting) == 1 else ("spec",)
        severity: Severity = "error" if certain else "warning"
        return Concern("PlacementPolicy", policy.name, path, what, severity, Kind.NO_NODE)


def _bundle(policies: Sequence[Policy]) -> Bundle:
    settings = [located.setting for each in policies for located in each.settings]
    return fold([each.name for each in policies], settings)


def _concerns_nodes(policy: Policy) -> bool:
    standing = _standing([policy])
    return any(limits_nodes(setting) for setting in standing) or any(tolerations_of(standing))


def _node_settings(bundle: Bundle) -> list[PlacementSetting]:
    return [*node_settings(bundle), *bundle.tolerations, *bundle.scalars]


def _standing(policies: Sequence[Policy]) -> list[PlacementSetting]:
    return _node_settings(_bundle(policies))
