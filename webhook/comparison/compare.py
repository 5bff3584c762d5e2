"""Compare what happens to a pod under two policy sets.

Only the result for a pod counts, not which policy causes it: a renamed policy, or a rejection with
another message, is not a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from webhook.comparison.difference import (
    Difference,
    FieldChange,
    Shut,
    Side,
    kind_of,
    same_placement,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.decision.decision import Decision
    from webhook.evaluation.evaluation import Evaluation
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# no run: the pod has no run, so no policy applies
# rejected: under both sets
Same: TypeAlias = Literal["no run", "same", "rejected"]
# How many conditions are reported if no node admits a pod.
_TOLD: Final = 3
# Policy, part and field.
_Key: TypeAlias = "tuple[str, str, str]"
T = TypeVar("T")
_EFFECTIVE: Final = frozenset({"set", "removed"})
_REJECTED: Final = frozenset({"rejected"})
_WITHOUT_POLICIES: Final = frozenset({"not-a-run", "not-sent"})


class Comparison:
    """Compares evaluations of one pod under two policy sets."""

    def __init__(self, old: PolicySet, new: PolicySet) -> None:
        self._same_classes = old.classes == new.classes
        self._old, self._new = _settings(old), _settings(new)

    def compare(self, old: Evaluation, new: Evaluation) -> Difference | Same:
        before, after = old.decision, new.decision
        if {before.result, after.result} <= _WITHOUT_POLICIES:
            return "no run"
        if not (before.allowed or after.allowed):
            return "rejected"
        placement, other = old.placement, new.placement
        alike = placement is not None and other is not None and same_placement(placement, other)
        # For the same placement, a class that creates nodes may have been added or removed.
        if alike and (self._same_classes or old.world.nodes is None):
            return "same"
        sides = _side(old), _side(new)
        if alike and sides[0].stranded == sides[1].stranded:
            return "same"
        if not any(side.allowed for side in sides):
            return "rejected"
        return Difference(kind_of(*sides), *sides, *self._attribute(before, after))

    def _attribute(
        self, old: Decision, new: Decision
    ) -> tuple[tuple[str, ...], tuple[FieldChange, ...]]:
        """Return the policies by which the decisions differ, in their order, and how, field by
        field.

        Policies with the same settings in both sets count only if no other policy can be named:
        they yield to another one, or another one no longer comes before them.
        """
        fields = self._fields(old, new)
        credited = dict.fromkeys(field.policy for field in fields if field.policy)
        taking_part = set(old.policies) ^ set(new.policies)
        otherwise = [
            name for name in credited if name in taking_part or self._differs(name, fields)
        ]
        # Without trace lines, the difference is which policies apply.
        policies = otherwise or list(credited) or sorted(taking_part)
        return tuple(policies), tuple(fields)

    def _fields(self, old: Decision, new: Decision) -> list[FieldChange]:
        counts = _EFFECTIVE if old.allowed and new.allowed else _REJECTED
        before, after = _by_key(old.trace), _by_key(new.trace)
        changes = []
        for key in dict.fromkeys((*after, *before)):
            was, now = before.get(key, ()), after.get(key, ())
            effective = any(entry.outcome in counts for entry in (*was, *now))
            if effective and (was != now or self._old.get(key) != self._new.get(key)):
                changes.append(FieldChange(*key, _text(was, counts), _text(now, counts)))
        return changes

    def _differs(self, policy: str, fields: Collection[FieldChange]) -> bool:
        keys = [field[:3] for field in fields if field.policy == policy]
        return any(self._old.get(key) != self._new.get(key) for key in keys)


def _side(evaluation: Evaluation) -> Side:
    if evaluation.refusals:
        return Side("rejected", "; ".join(evaluation.refusals))
    decision, nodes = evaluation.decision, evaluation.nodes
    if not decision.allowed or nodes is None or nodes.unread.what:
        return Side(decision.result, decision.reason)
    shut = () if nodes.last.admitted else nodes.last.shut[:_TOLD]
    return Side(
        decision.result,
        decision.reason,
        len(nodes.last.admitted),
        tuple([Shut(exclusion.condition, len(exclusion.nodes)) for exclusion in shut]),
        nodes.on_demand,
    )


def _settings(policies: PolicySet) -> Mapping[_Key, Sequence[PlacementSetting]]:
    return _grouped(
        ((policy.name, setting.part, setting.field), setting)
        for policy in policies.policies
        for setting in policy.settings
    )


def _by_key(trace: Sequence[Entry]) -> Mapping[_Key, Sequence[Entry]]:
    return _grouped(((entry.policy, entry.part, entry.field), entry) for entry in trace)


def _grouped(pairs: Iterable[tuple[_Key, T]]) -> dict[_Key, list[T]]:
    groups: dict[_Key, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _text(entries: Sequence[Entry], counts: Collection[str]) -> str:
    done = [entry.reason for entry in entries if entry.outcome in counts]
    return "; ".join(done or [f"{entry.outcome}: {entry.reason}" for entry in entries])
