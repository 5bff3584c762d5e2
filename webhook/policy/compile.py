"""Compile a policy document to settings, and a split to policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.placement import capacity as classes_of
from webhook.placement.capacity import Mode
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fallback import Fallback
from webhook.placement.fields import MAPS, SCALARS
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.placement.pod import AFFINITY_LISTS, REQUIRED
from webhook.placement.schema.placement import Requirements
from webhook.placement.settings import (
    AllowedSetting,
    ListSetting,
    MemberSetting,
    RequiredSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
    ValuesSetting,
)
from webhook.placement.split import ends
from webhook.placement.tolerations import Pattern
from webhook.policy.match_model import Match
from webhook.times import parse_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.placement_setting import Part, PlacementSetting
    from webhook.placement.schema.placement import Fallback as FallbackModel
    from webhook.placement.schema.placement import PolicyPlacement
    from webhook.placement.shapes import JsonObject, Toleration
    from webhook.policy.findings import Path
    from webhook.policy.model import CapacityClass as CapacityClassDocument
    from webhook.policy.model import PlacementPolicy
    from webhook.policy.policy_documents import PolicyDocument

# How many replicas a role has whose percentages are checked.
_REPLICAS: Final = 100


def capacity_class(document: CapacityClassDocument) -> CapacityClass:
    """Compile a class that has shapes. Raises InvalidClass."""
    shapes = []
    taints: list[Any] = []
    for raw in written_spec(document).get("nodes", []):
        shapes.append(classes_of.shape(raw.get("labels", {}), raw.get("matchExpressions", [])))
        taints.extend(raw.get("taints", []))
    autoscaled = bool(document.spec.autoscaled)
    compiled_class = classes_of.compiled(document.name, shapes, taints, autoscaled=autoscaled)
    return with_grace(compiled_class, document)


def with_grace(compiled_class: CapacityClass, document: CapacityClassDocument) -> CapacityClass:
    """Return the class with the grace period of its document."""
    most = document.spec.max_termination_grace_period_seconds
    return compiled_class if most is None else replace(compiled_class, most_grace=most)


def settings(
    policy: PlacementPolicy, classes: Mapping[str, CapacityClass]
) -> tuple[PlacementSetting, ...]:
    """Return every setting of a policy whose split has one share, or that has none.

    Raises KeyError for a class that `classes` does not hold.
    """
    result: list[PlacementSetting] = []
    spec = written_spec(policy)
    for part, placement in policy.spec.parts():
        result.extend(_of_part(policy.name, part, placement, spec[part], classes))
    return tuple(result)


def written_spec(document: PolicyDocument) -> dict[str, Any]:
    """Return the spec of a document as JSON has it.

    By the document: each model that is dumped alone is built alone, which takes 20 ms.
    """
    spec: dict[str, Any] = document.model_dump(by_alias=True, exclude_none=True, include={"spec"})[
        "spec"
    ]
    return spec


def _of_part(
    policy: str,
    part: Part,
    placement: PolicyPlacement,
    raw: Mapping[str, Any],
    classes: Mapping[str, CapacityClass],
) -> Iterator[PlacementSetting]:
    if_null = placement.patch_strategy == "IsNull"
    for name in MAPS:
        for key, value in sorted(raw.get(name, {}).items()):
            yield MemberSetting(
                policy=policy, part=part, if_null=if_null, map=name, key=key, value=value
            )
    for name in SCALARS:
        if name in raw:
            yield ScalarSetting(
                policy=policy, part=part, if_null=if_null, name=name, value=raw[name]
            )
    for toleration in raw.get("tolerations", []):
        yield TolerationSetting(policy=policy, part=part, if_null=if_null, toleration=toleration)
    yield from _from_namespace(policy, part, raw, if_null=if_null)
    if isinstance(placement, Requirements):
        yield from _of_authors(policy, part, placement)
    affinity = raw.get("affinity", {})
    terms = affinity.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms")
    if terms:
        yield RequiredSetting(policy=policy, part=part, if_null=if_null, terms=tuple(terms))
    for name, (kind, key) in AFFINITY_LISTS.items():
        entries = affinity.get(kind, {}).get(key)
        if entries:
            yield ListSetting(
                policy=policy, part=part, if_null=if_null, name=name, entries=tuple(entries)
            )
    for constraint in raw.get("topologySpreadConstraints", []):
        yield SpreadSetting(policy=policy, part=part, if_null=if_null, constraint=constraint)
    (share,) = placement.split or (None,)
    for setting in (*(placement.capacity or ()), *([share] if share else ())):
        yield CapacitySetting(
            policy=policy,
            part=part,
            if_null=if_null,
            capacity=classes[setting.class_name],
            mode=setting.mode,
            weight=setting.weight or classes_of.DEFAULT_WEIGHT,
            share=share.position if share is not None and setting is share else None,
            fallback=_fallback(setting.fallback),
        )


def _of_authors(policy: str, part: Part, placement: Requirements) -> Iterator[PlacementSetting]:
    """Yield what authors may write."""
    if allowed := placement.allowed_tolerations:
        yield AllowedSetting(
            policy=policy,
            part=part,
            patterns=tuple(
                Pattern(pattern.key, pattern.value, pattern.effect or "")
                for pattern in allowed.patterns
            ),
            remove=allowed.remove,
        )
    for at, judged in enumerate(placement.values or ()):
        yield ValuesSetting(
            policy=policy,
            part=part,
            name=judged.field,
            key=judged.key,
            values=tuple(judged.one_of),
            stated=judged.stated,
            at=at,
        )


def _from_namespace(
    policy: str, part: Part, raw: Mapping[str, Any], *, if_null: bool
) -> Iterator[NamespaceSetting]:
    examples: list[tuple[JsonObject, int, MemberSetting | TolerationSetting]] = []
    for at, entry in enumerate(raw.get("nodeSelectorFrom", [])):
        member = MemberSetting(
            policy=policy,
            part=part,
            if_null=if_null,
            map="nodeSelector",
            key=entry["key"],
            value="",
        )
        examples.append((entry, at, member))
    for at, entry in enumerate(raw.get("tolerationsFrom", [])):
        key, effect = entry["key"], entry["effect"]
        toleration: Toleration = {"key": key, "operator": "Equal", "value": "", "effect": effect}
        tolerated = TolerationSetting(
            policy=policy, part=part, if_null=if_null, toleration=toleration
        )
        examples.append((entry, at, tolerated))
    for entry, at, example in examples:
        yield NamespaceSetting(
            policy=policy,
            part=part,
            if_null=if_null,
            example=example,
            label=entry["namespaceLabel"],
            default=entry.get("default", ""),
            position=at,
        )


def _fallback(given: FallbackModel | None) -> Fallback | None:
    if given is None:
        return None
    return Fallback(
        Mode(given.then),
        given.after_disruptions,
        parse_span(given.within or "24h"),
        parse_span(given.after_pending) if given.after_pending else None,
        parse_span(given.return_after or "2h"),
    )


def located(settings: Iterable[PlacementSetting]) -> Iterator[tuple[PlacementSetting, Path]]:
    """Yield each setting of one policy with its path in the document."""
    counts: Counter[tuple[str, type[PlacementSetting]]] = Counter()
    for setting in settings:
        kind = (setting.part, type(setting))
        place = (setting.origin or setting).place or (setting.row.name, counts[kind])
        yield setting, ("spec", setting.part, *place)
        counts[kind] += 1


def shares_apart(policy: PlacementPolicy) -> Sequence[PlacementPolicy]:
    """Return a policy for each share, which matches its replicas; the policy itself without a
    split.

    The last one matches all pods that the others do not. Shares of replicas that the policy does
    not match are left out. Of a percentage, replicas are matched as in a role of some size.
    """
    if not policy.split:
        return [policy]
    variants, shares = policy.variants(), policy.shares
    policies, start = [], 0
    counted = sum(share.number or 0 for share in shares)
    given = policy.spec.match.replica_indexes if policy.spec.match else None
    for at, end in enumerate(ends(shares, counted + _REPLICAS)):
        indexes = [index for index in range(start, end) if given is None or index in given]
        start = end
        if indexes:
            match = policy.spec.match or Match()
            match = match.model_copy(update={"replica_indexes": indexes})
            policies.append(_named(variants[at], at, {"match": match}))
    others = [Match(replica_indexes=[*range(start)])] if start else []
    last = _named(variants[-1], len(shares) - 1, {"exclude": [*policy.spec.exclude, *others]})
    return [*policies, last]


def _named(policy: PlacementPolicy, at: int, update: dict[str, object]) -> PlacementPolicy:
    metadata = policy.metadata.model_copy(update={"name": f"{policy.name} split[{at}]"})
    spec = policy.spec.model_copy(update=update)
    return policy.model_copy(update={"metadata": metadata, "spec": spec})
