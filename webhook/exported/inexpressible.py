"""Parts of a policy set that cannot be expressed exactly in CEL, with reason and cure.

The engine computes for each pod whether a node can meet two settings about the same node label
(placement.fold). CEL cannot, so sets in which two such settings can match one pod are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.exported import plain_fields_cel, tolerations_cel
from webhook.exported.positioned_settings import of_type
from webhook.placement import label_values, node_affinity
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.settings import (
    AllowedSetting,
    MemberSetting,
    RequiredSetting,
    TolerationSetting,
    is_selector,
)
from webhook.policy import operating_system
from webhook.policy.matched_pods import MatchedPods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.exported.positioned_settings import Enforced, Placed, PositionedSettings
    from webhook.placement.bundle import NodeSetting
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import Term

# A JSON patch made in CEL has numbers as floats of 64 bits.
_EXACT: Final = 2**53
_OF_NODES: Final = (RequiredSetting, CapacitySetting)
_IN_CEL: Final = (*plain_fields_cel.KINDS, *tolerations_cel.KINDS, *_OF_NODES)


def gaps(placed: Placed, settings: PositionedSettings, seconds: Mapping[str, int]) -> list[str]:
    """Return one line for each problem: the policy, the field, the reason, and the cure."""
    reasons = list(_of_set(placed))
    for policy in placed.policies:
        reasons += [*_of_requests(policy), *_of_policy(policy)]
    reasons += _of_nodes(placed, settings)
    reasons += _of_allowed_tolerations(placed, settings)
    reasons += _of_tolerations(settings, seconds)
    return list(dict.fromkeys(reasons))


def _of_set(placed: Placed) -> Iterator[str]:
    for capacity in placed.classes:
        if capacity.most_grace is not None:
            yield (
                f"class {capacity.name}: maxTerminationGracePeriodSeconds: exported policies do "
                "not know which pods can run only there; leave it out, and give a policy's "
                "overrides terminationGracePeriodSeconds"
            )
    for name in placed.exceptions:
        yield (
            f"exception {name}: it ends, and an admission policy does not know what time it is; "
            "export without it, or exclude these pods in the policies themselves"
        )
    for name in placed.rolled_out:
        yield (
            f"policy {name}: rollout: it is enforced in some namespaces and under Audit in "
            "others, which exported policies cannot distinguish; match the namespaces where "
            "it is enforced"
        )


def _describe_gap(setting: PlacementSetting, why: str) -> str:
    return f"policy {setting.policy}: {setting.part}.{setting.written}: {why}"


def _of_requests(policy: Enforced) -> Iterator[str]:
    for match in (policy.match, *policy.exclude):
        if match.requests:
            yield (
                f"policy {policy.name.partition(' ')[0]}: match.requests: exported policies cannot "
                "add up quantities; match by resources, or serve the policies by the webhook"
            )


def _of_policy(policy: Enforced) -> Iterator[str]:
    if policy.in_percent:
        yield (
            f"policy {policy.name.partition(' ')[0]}: split: a percentage depends on how many "
            "replicas a role has, which exported policies do not know; give count"
        )
    for setting in policy.settings:
        if isinstance(setting, CapacitySetting) and setting.fallback:
            yield _describe_gap(
                setting,
                "a fallback depends on what happened before, which exported policies do not know; "
                "leave it out, or serve the policies by the webhook",
            )
    system = operating_system.required_system(policy.settings)
    if system is not None:
        yield (
            f"policy {policy.name}: its nodes run {system[1]}, and which of its settings "
            "apply depends on the operating system in the pod's nodeSelector or affinity; "
            "match pods by podSelector or namespaces, and leave kubernetes.io/os out"
        )
    for setting in policy.settings:
        if isinstance(setting, CapacitySetting) and setting.part == "requirements":
            yield _describe_gap(
                setting,
                "a requirement applies together with overrides on the same class, and is "
                "compared with the pod's annotation, which exported policies do not read; "
                "make it an override",
            )
        if isinstance(setting, AllowedSetting) and setting.remove:
            yield _describe_gap(
                setting,
                "exported policies reject a pod, and take no toleration from it; leave out remove",
            )
        if isinstance(setting, RequiredSetting) and any(
            t.get("matchFields") for t in setting.terms
        ):
            yield _describe_gap(
                setting, "matchFields are not exported; use the label kubernetes.io/hostname"
            )
        if not isinstance(setting, _IN_CEL):
            yield _describe_gap(
                setting, "it is not exported; leave it out, or serve the policies by the webhook"
            )
        if any(abs(number) > _EXACT for number in _numbers(vars(setting))):
            yield _describe_gap(
                setting,
                f"a number over {_EXACT} is not exact in a patch made in CEL; make it smaller",
            )


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value


def _of_nodes(placed: Placed, settings: PositionedSettings) -> Iterator[str]:
    """Yield settings of one node label that can match one pod, unless both are selector keys."""
    reach = _Reach(placed)
    mine: list[tuple[int, NodeSetting]] = []
    for at, setting in settings:
        if isinstance(setting, _OF_NODES) or is_selector(setting):
            mine.append((at, setting))
    for number, (at, setting) in enumerate(mine):
        for other_at, other in mine[:number]:
            if (
                reach.is_disjoint(at, other_at)
                or _alternatives(other, setting)
                or _harmless(other, setting)
            ):
                continue
            keys = ", ".join(sorted(setting.node_keys & other.node_keys))
            yield _describe_gap(
                setting,
                f"it uses node label {keys}, as policy {other.policy} ({other.field}) does; "
                "only the webhook computes whether a node meets both: set it in one of the "
                "two, or match different kinds, roles, frameworks, namespaces or labels",
            )


class _Reach:
    """Which policies, by position, cannot match the same pod."""

    def __init__(self, placed: Placed) -> None:
        self._matched = [MatchedPods(policy.match) for policy in placed.policies]
        self._excluded = [
            [MatchedPods(block) for block in policy.exclude] for policy in placed.policies
        ]

    def is_disjoint(self, first: int, second: int) -> bool:
        return self._matched[first].is_disjoint(self._matched[second]) or any(
            block.covers(self._matched[matching])
            for excluding, matching in ((first, second), (second, first))
            for block in self._excluded[excluding]
        )


def _of_allowed_tolerations(placed: Placed, settings: PositionedSettings) -> Iterator[str]:
    """Yield default capacity whose tolerations a list of allowed ones may refuse.

    The check sees the pod as it was changed. Where policies wrote a node label of the class, it
    cannot tell whether the author did, for whose pods the default does not apply.
    """
    reach = _Reach(placed)
    lists = of_type(settings, AllowedSetting)
    writers = [(at, setting.node_keys) for at, setting in settings if setting.limits_nodes]
    for at, setting in of_type(settings, CapacitySetting) if lists else ():
        capacity = setting.capacity
        if not (
            setting.is_default
            and setting.mode.tolerates
            and any(
                keys & capacity.keys and not reach.is_disjoint(at, writer_at)
                for writer_at, keys in writers
            )
        ):
            continue
        for list_at, allowed in lists:
            refused = [
                toleration
                for toleration in capacity.tolerations
                if not any(pattern.allows(toleration) for pattern in allowed.patterns)
            ]
            if refused and not reach.is_disjoint(at, list_at):
                yield _describe_gap(
                    setting,
                    f"exported policies check allowedTolerations of policy {allowed.policy} in "
                    "the pod as it was changed, and cannot tell whether this default applied: "
                    f"they would refuse tolerations of class {capacity.name}; make it an "
                    "override, or allow the taints of the class there",
                )


def _alternatives(setting: NodeSetting, other: NodeSetting) -> bool:
    """Return whether they are never applied together, or are equal."""
    if isinstance(setting, CapacitySetting) and isinstance(other, CapacitySetting):
        return setting.capacity.name == other.capacity.name
    if isinstance(setting, RequiredSetting) and isinstance(other, RequiredSetting):
        return setting.terms == other.terms or (setting.is_default and other.is_default)
    return isinstance(setting, MemberSetting) and isinstance(other, MemberSetting)


def _harmless(setting: NodeSetting, other: NodeSetting) -> bool:
    """Return whether both can always be met: other labels, or a value that every term admits."""
    if isinstance(setting, MemberSetting):
        return _admits(other.condition, setting)
    if isinstance(other, MemberSetting):
        return _admits(setting.condition, other)
    return None in (setting.condition, other.condition) or not setting.node_keys & other.node_keys


def _admits(condition: Sequence[Term] | None, member: MemberSetting) -> bool:
    return condition is None or all(
        label_values.holds(requirement, str(member.value))
        for term in condition
        for requirement in term.get("matchExpressions") or ()
        if requirement.get("key") == member.key
    )


def _of_tolerations(settings: PositionedSettings, seconds: Mapping[str, int]) -> Iterator[str]:
    specific = [w.setting for w in settings if tolerations_cel.is_specific(w.setting)]
    replacing: dict[str, TolerationSetting] = {}
    for _, setting in of_type(settings, TolerationSetting):
        if setting.if_null and specific:
            yield _describe_gap(
                setting,
                "under IsNull it looks at what the pod brought, which the NoExecute toleration of "
                f"policy {specific[0].policy} has been put into by then; leave IsNull out",
            )
        key = tolerations_cel.replaced_default(setting, seconds)
        first = replacing.setdefault(key, setting) if key else setting
        if first.toleration != setting.toleration:
            yield _describe_gap(
                setting,
                "two defaults replace the API server's own toleration; policy "
                f"{first.policy} has the other one: set it once, or as an override",
            )


def unsatisfiable(settings: PositionedSettings) -> list[str]:
    """Problems for terms that no node can meet, which the engine drops."""
    return [
        _describe_gap(setting, "no node can meet one of its terms; leave that term out")
        for _, setting in of_type(settings, RequiredSetting)
        if len(node_affinity.pruned(setting.terms, {})) < len(setting.terms)
    ]
