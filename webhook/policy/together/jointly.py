"""Policies of which no two contradict, and that together require what no node is.

Told at a policy, of others that are certain to be enforced for each of its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.policy.findings import first_few
from webhook.policy.together.required import possible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.policy.findings import Finding
    from webhook.policy.together.required import Required
    from webhook.policy.together.said import Policy

_NAMED: Final = 3
# Of more that require something of one policy's labels nothing is worked out.
_MOST: Final = 20


def jointly(
    required: Sequence[Required], chosen: Collection[Policy], most: int
) -> Iterator[Finding]:
    """What is to be said of policies, given in their order, for the sake of those chosen.

    At most `most` times it is asked whether one is enforced for all pods of another.
    """
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
        others = [
            repr(each.policy.name)
            for each in required
            if each.policy in core and each.policy is not policy
        ]
        what = (
            f"leaves no node beside what policies {first_few(others, _NAMED)} require: every pod "
            "that it matches is rejected"
        )
        yield policy.document.finding(("spec", "requirements"), what, "warning", about="jointly")


def _core(group: Sequence[Required]) -> frozenset[Policy]:
    """Some of a group that leave no node, and none of which can be spared; or nothing."""
    core = [] if possible(group) else list(group)
    for each in list(core):
        others = [other for other in core if other is not each]
        if not possible(others):
            core = others
    return frozenset(each.policy for each in core)
