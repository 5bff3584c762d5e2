"""By which policies a pod is placed otherwise: what they setting of it differs between two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.comparison.difference import FieldChange

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.admission.evaluation import Evaluation
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# Policy, part and field.
_Key: TypeAlias = "tuple[str, str, str]"
_EFFECTIVE: Final = frozenset({"set", "removed"})
_REJECTED: Final = frozenset({"rejected"})


class Authors:
    """Knows what each policy of two sets settings."""

    def __init__(self, old: PolicySet, new: PolicySet) -> None:
        self._old, self._new = _settings(old), _settings(new)

    def told(
        self, old: Evaluation, new: Evaluation
    ) -> tuple[tuple[str, ...], tuple[FieldChange, ...]]:
        """The policies by which the decisions differ, in their order, and how, field by field.

        Policies that say the same of the pod in both sets only count if no other can be named:
        they give way to another, or another no longer stands before them.
        """
        fields = self._fields(old, new)
        said = dict.fromkeys(field.policy for field in fields if field.policy)
        taking_part = set(old.policies) ^ set(new.policies)
        otherwise = [name for name in said if name in taking_part or self._differs(name, fields)]
        # Without a word in the trace, the change is one of who takes part at all.
        policies = otherwise or list(said) or sorted(taking_part)
        return tuple(policies), tuple(fields)

    def _fields(self, old: Evaluation, new: Evaluation) -> list[FieldChange]:
        counts = _EFFECTIVE if old.allowed and new.allowed else _REJECTED
        before, after = _by_key(old.trace), _by_key(new.trace)
        found = []
        for key in dict.fromkeys((*after, *before)):
            was, now = before.get(key, ()), after.get(key, ())
            effective = any(entry.outcome in counts for entry in (*was, *now))
            if effective and (was != now or self._old.get(key) != self._new.get(key)):
                found.append(FieldChange(*key, _text(was, counts), _text(now, counts)))
        return found

    def _differs(self, policy: str, fields: Collection[FieldChange]) -> bool:
        keys = [field[:3] for field in fields if field.policy == policy]
        return any(self._old.get(key) != self._new.get(key) for key in keys)


def _settings(policies: PolicySet) -> Mapping[_Key, Sequence[PlacementSetting]]:
    found: dict[_Key, list[PlacementSetting]] = {}
    for policy in policies.policies:
        for setting in policy.settings:
            found.setdefault((policy.name, setting.part, setting.field), []).append(setting)
    return found


def _by_key(trace: Sequence[Entry]) -> Mapping[_Key, Sequence[Entry]]:
    found: dict[_Key, list[Entry]] = {}
    for entry in trace:
        found.setdefault((entry.policy, entry.part, entry.field), []).append(entry)
    return found


def _text(entries: Sequence[Entry], counts: Collection[str]) -> str:
    """What was done; if all came to nothing, how."""
    done = [each.reason for each in entries if each.outcome in counts]
    return "; ".join(done or [f"{each.outcome}: {each.reason}" for each in entries])
