"""Policies of which no two contradict, and that together require what no node is.

Told at a policy, of others that are certain to be enforced for each of its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement import node_affinity
from webhook.placement.wishes import CapacityWish
from webhook.policy.findings import first_few
from webhook.policy.together.said import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding
    from webhook.policy.together.said import Policy

_NAMED: Final = 3
# Of more that require something of one policy's labels nothing is worked out.
_MOST: Final = 20


class _Required(NamedTuple):
    policy: Policy
    keys: frozenset[str]
    conditions: tuple[Sequence[Term], ...]


def jointly(policies: Sequence[Policy], chosen: Collection[Policy], most: int) -> Iterator[Finding]:
    """What is to be said of the policies, given in their order, for the sake of those chosen.

    At most `most` times it is asked whether one is enforced for all pods of another.
    """
    required = list(_required(policies))
    found: dict[frozenset[Policy], Policy] = {}
    known: dict[tuple[str, ...], frozenset[Policy]] = {}
    for policy, keys, _ in required:
        if policy not in chosen and not any(each.outruns(policy) for each in chosen):
            continue
        most -= len(required)
        if most < 0:
            break
        near = [
            each
            for each in required
            if not keys.isdisjoint(each.keys) and each.policy.outruns(policy)
        ]
        if 2 < len(near) <= _MOST:
            names = tuple(each.policy.name for each in near)
            if names not in known:
                known[names] = _core(near)
            core = known[names]
            if len(core) > 2 and policy in core and not core.isdisjoint(chosen):
                found[core] = policy
    for core, policy in found.items():
        others = [repr(each.name) for each in policies if each in core and each is not policy]
        what = (
            f"leaves no node beside what policies {first_few(others, _NAMED)} require: every pod "
            "that it matches is rejected"
        )
        yield policy.document.finding(("spec", "requirements"), what, "warning", about="jointly")


def _required(policies: Sequence[Policy]) -> Iterator[_Required]:
    """What those that are enforced everywhere are sure to require of nodes."""
    said = {policy: policy.of_parts("requirements") for policy in policies}
    # Another requirement of such a class may have to give way.
    unsure = {
        each.wish.field
        for wishes in said.values()
        for each in wishes
        if isinstance(each.wish, CapacityWish) and each.wish.mode == "None"
    }
    for policy, wishes in said.items():
        spec = policy.model.spec
        sure = [each for each in wishes if each.limits and each.wish.field not in unsure]
        if sure and spec.enforcement == "Enforce" and spec.rollout is None:
            keys = frozenset[str]().union(*(each.limits for each in sure))
            yield _Required(policy, keys, tuple(limits(each.wish) for each in sure))


def _core(group: Sequence[_Required]) -> frozenset[Policy]:
    """Some of a group that leave no node, and none of which can be spared; or nothing."""
    core = [] if _possible(group) else list(group)
    for each in list(core):
        others = [other for other in core if other is not each]
        if not _possible(others):
            core = others
    return frozenset(each.policy for each in core)


def _possible(group: Sequence[_Required]) -> bool:
    conditions = (condition for each in group for condition in each.conditions)
    try:
        return node_affinity.satisfiable(node_affinity.conjunction(conditions), {})
    except node_affinity.TooManyTerms:
        return True
