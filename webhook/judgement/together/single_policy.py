"""Findings about one policy by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.judgement.together.conflicts import once_enforced
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fold import fold
from webhook.placement.label_values import int64
from webhook.policy.findings import Kind
from webhook.policy.load import later_marks_written
from webhook.policy.node_settings import limits
from webhook.policy.refused_pods import refused_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.judgement.together.located_settings import LocatedSetting
    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.bundle import Bundle
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.policy.findings import Finding


def findings(policy: Policy) -> Iterator[Finding]:
    """Yield settings of a policy that the API server rejects, or that contradict its other
    settings.
    """
    yield from refused_settings(policy.document)
    yield from later_marks_written(policy.document)
    yield from _weakening(policy)
    if policy.contradictory:
        yield _contradiction(policy)
    else:
        for part in ("overrides", "defaults"):
            yield from _never_applied(policy, part)


def _weakening(policy: Policy) -> Iterator[Finding]:
    """Yield the settings that weaken what holds pods apart."""
    for located in policy.settings:
        if how := located.setting.weakens:
            which = "pods that say nothing else" if located.setting.is_default else "pods"
            what = f"weakens {which}: {how}{once_enforced([policy])}"
            yield policy.document.finding(located.path, what, "warning", kind=Kind.WEAKENS)


def _contradiction(policy: Policy) -> Finding:
    """Return the finding about requirements that contradict each other."""
    folded = _fold(policy, policy.requirements)
    rejected = {entry.field for entry in folded.trace if entry.outcome == "rejected"}
    path = next(
        located.path for located in policy.requirements if located.setting.field in rejected
    )
    what = f"every pod that it matches is rejected: {folded.contradictions[0]}"
    return policy.document.finding(
        path,
        what + once_enforced([policy]),
        "error" if policy.enforced else "warning",
        about=policy.name,
        kind=Kind.EVERY_POD_REJECTED,
    )


def _never_applied(policy: Policy, part: str) -> Iterator[Finding]:
    """Yield the settings of a part that no pod gets, because no node meets them and others."""
    # Of a class another policy's requirement may come first.
    certain = [
        located
        for located in policy.requirements
        if not isinstance(located.setting, CapacitySetting)
    ]
    possible: list[LocatedSetting] = []
    for located in policy.settings_of(part):
        if not located.node_keys:
            continue
        if _is_dropped(policy, [], located):
            value = f"{located.setting.describe_value}{_hint(located.setting)}"
            yield _impossible(policy, located, f"no pod gets it: no node can meet {value}")
        elif _is_dropped(policy, certain, located):
            what = "no pod gets it: no node meets both it and the policy's own requirements"
            yield policy.document.finding(located.path, what, "warning", kind=Kind.NEVER_APPLIED)
        elif _is_dropped(policy, possible, located):
            # Pods for which another policy decides those settings do get this one.
            what = f"no node meets both it and the other {part} of the policy"
            yield _impossible(policy, located, what, Kind.CONTRADICTS_ITSELF)
        else:
            possible.append(located)


def _impossible(
    policy: Policy, located: LocatedSetting, what: str, kind: Kind = Kind.IMPOSSIBLE_SETTING
) -> Finding:
    about = f"{policy.name} {located.setting.part} {located.setting.field}"
    return policy.document.finding(located.path, what, about=about, kind=kind)


def _hint(setting: PlacementSetting) -> str:
    """Return why no label meets a bound that looks possible."""
    requirements = (r for term in limits(setting) for r in term.get("matchExpressions") or ())
    below = (r for r in requirements if r.get("operator") == "Lt")
    if any((int64(value) or 0) <= 0 for r in below for value in r.get("values") or ()):
        return ", for no label is a negative number"
    return ""


def _fold(policy: Policy, settings: Iterable[LocatedSetting]) -> Bundle:
    return fold((policy.name,), [located.setting for located in settings])


def _is_dropped(policy: Policy, before: Sequence[LocatedSetting], located: LocatedSetting) -> bool:
    trace = _fold(policy, [*before, located]).trace
    return any((line.outcome, line.field) == ("dropped", located.setting.field) for line in trace)
