"""What a policy is for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.conditions import describe_fields

if TYPE_CHECKING:
    from webhook.policy.match_model import Match
    from webhook.policy.model import PlacementPolicy

EVERYWHERE = "everywhere"
_ALL = "every pod of every run"
_LEADS = {"true": "who leads its run", "false": "who does not lead its run"}


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
    return [
        _LEADS[text] if field.form == "flag" else f"{field.written} {text}"
        for field, text in describe_fields(match)
    ]
