"""What a policy is for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement.schema.selectors import LabelSelector
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from webhook.policy.match_model import Match
    from webhook.policy.model import PlacementPolicy

EVERYWHERE = "everywhere"
_ALL = "every pod of every run"


def for_whom(policy: PlacementPolicy) -> str:
    """Which pods it matches: `roles worker; namespaces ml-*; but not kinds notebook`."""
    match = policy.spec.match
    said = _conditions(match) if match is not None else []
    but = [f"but not {' and '.join(_conditions(block))}" for block in policy.spec.exclude]
    return "; ".join([*(said or [_ALL]), *but])


def where(policy: PlacementPolicy) -> str:
    """Where it is enforced: everywhere, nowhere (audit), or in the namespaces of its rollout."""
    if policy.spec.enforcement == "Audit":
        return "audit"
    rollout = policy.spec.rollout
    return f"in {', '.join(rollout.namespaces)}" if rollout else EVERYWHERE


def _conditions(match: Match) -> list[str]:
    found = []
    for name, info in type(match).model_fields.items():
        value = getattr(match, name)
        if value is None:
            continue
        word = info.alias or name
        if isinstance(value, LabelSelector):
            conditions = compile_selector(value).conditions
            found.append(f"{word} {', '.join(map(str, conditions)) or 'any'}")
        elif isinstance(value, bool):
            found.append("who leads its run" if value else "who does not lead its run")
        else:
            found.append(f"{word} {', '.join(map(str, value))}")
    return found
