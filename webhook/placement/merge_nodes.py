"""Merging of what a node's labels must be: nodeSelector, required node affinity, capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.merge_capacity import settled_capacity
from webhook.placement.merge_verdict import judge_result
from webhook.placement.node_settings import (
    NodeSetting,
    condition_of,
    conjoined,
    node_settings,
    with_settings,
)
from webhook.placement.settings import CapacitySetting, MemberSetting, RequiredSetting
from webhook.placement.trace import quoted, quoted_both

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """The result: nodeSelector, required terms, and every capacity mode that applies."""

    selector: dict[str, str]
    required: list[Term] | None
    capacity: list[Settled]


def choose(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[Settled],
    spoken: Collection[str],
    ledger: Ledger,
) -> NodeChoice:
    """The node fields of the result. `spoken` are the classes that the annotation names.

    Rejections are noted in the ledger; the caller then drops the result.
    """
    selector = _freed(bundle, pod, ledger)
    base = Demand(
        {**selector, **bundle.hard.selector} if bundle.hard.selector else selector,
        conjoined(pod.required, [bundle.hard.terms, *(a.condition for a in asked)]),
    )
    # A bundle can be met as it is (it was folded so): only the pod's own word can spoil that.
    apart = pod.required is None and not asked and bundle.term_keys.isdisjoint(selector)
    named = node_affinity.keys(pod.required or ())
    while True:
        candidates, kept = _applicable(bundle, pod, selector, named, spoken)
        defaults, dropped = candidates, list[NodeSetting]()
        together = _beside(base, candidates)
        if together is None or not (apart or together.possible):
            defaults, dropped = _standing(base, candidates)
            together = with_settings(base, defaults)
        result = _pruned(together, pod)
        # A key is the pod's word as long as a term that names it is left: pruning may end that.
        left = named & node_affinity.keys(result.terms or ())
        if left == named:
            break
        named = left
    for setting, reason in kept:
        ledger.note(setting, "kept", reason)
    for setting in dropped:
        ledger.warn(setting, "dropped", "stands back: beside the pod's own word no node is left")
    if not apart and not base.possible and not ledger.rejections:
        judge_result(bundle, pod, asked, selector, ledger)
    for setting in (*(w for w in node_settings(bundle) if not w.is_default), *defaults):
        _note(setting, pod, ledger)
    settled = [settled_capacity(w) for w in bundle.capacity if not w.is_default]
    settled += asked
    settled += [settled_capacity(w) for w in defaults if isinstance(w, CapacitySetting)]
    return NodeChoice(
        pod.node_selector if result.selector == pod.node_selector else result.selector,
        pod.required if result.terms == pod.required else result.terms,
        settled,
    )


def _freed(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> dict[str, str]:
    """The pod's nodeSelector without what a capacity override cannot be met beside."""
    selector = pod.node_selector
    fixed = bundle.hard.selector
    for setting in bundle.capacity:
        if setting.part != "overrides" or setting.condition is None or not selector:
            continue
        keys = setting.capacity.keys
        kept = {key: value for key, value in fixed.items() if key in keys}
        for key in sorted(keys & selector.keys() - fixed.keys()):
            trial = {**kept, key: selector[key]}
            if node_affinity.satisfiable(setting.condition, trial):
                kept = trial
            else:
                what = f"policy {setting.policy} wants {setting.capacity.name}={setting.mode}"
                ledger.warn_pod(
                    f"nodeSelector[{key}]", "removed", f"{quoted(selector[key])}: {what}"
                )
                selector = {k: v for k, v in selector.items() if k != key}
    return selector


def _pruned(result: Demand, pod: PodPlacement) -> Demand:
    """The result without terms that no node can meet, if anything changes and any is left."""
    if result.terms is None or result == (pod.node_selector, pod.required) or not result.possible:
        return result
    return Demand(result.selector, node_affinity.pruned(result.terms, result.selector))


def _applicable(
    bundle: Bundle,
    pod: PodPlacement,
    selector: dict[str, str],
    named: frozenset[str],
    spoken: Collection[str],
) -> tuple[list[NodeSetting], list[tuple[NodeSetting, str]]]:
    """The defaults about whose field the pod says nothing, and the others with what it says."""
    result: list[NodeSetting] = []
    kept: list[tuple[NodeSetting, str]] = []
    for setting in node_settings(bundle):
        if setting.is_default:
            word = _pods_word(setting, pod, selector, named, spoken)
            if word is None:
                result.append(setting)
            else:
                kept.append((setting, word))
    return result, kept


def _pods_word(
    setting: NodeSetting,
    pod: PodPlacement,
    selector: dict[str, str],
    named: frozenset[str],
    spoken: Collection[str],
) -> str | None:
    """What the pod says itself of a default's field, or None."""
    match setting:
        case MemberSetting():
            if setting.key in selector:
                return f"the pod says {quoted(selector[setting.key])}"
            if setting.if_null and selector:
                return "the pod has a nodeSelector of its own"
            if setting.key in named:
                return "the pod's required affinity names this key"
        case RequiredSetting():
            if pod.required is not None:
                return "the pod has required node affinity of its own"
        case CapacitySetting():
            if setting.capacity.name in spoken or (setting.if_null and spoken):
                return "the pod's annotation asks for itself"
            if not setting.capacity.keys.isdisjoint(
                selector
            ) or not setting.capacity.keys.isdisjoint(named):
                return "the pod's selector or required affinity speaks of this class"
    return None


def _beside(base: Demand, defaults: Sequence[NodeSetting]) -> Demand | None:
    """`base` with defaults beside it; None if there would be more terms than can be computed."""
    try:
        return with_settings(base, defaults)
    except node_affinity.TooManyTerms:
        return None


def _standing(
    base: Demand, defaults: Sequence[NodeSetting]
) -> tuple[list[NodeSetting], list[NodeSetting]]:
    """The defaults beside which a node is left, taken one after the other, and the others."""
    result: list[NodeSetting] = []
    dropped: list[NodeSetting] = []
    for setting in defaults:
        limits = isinstance(setting, MemberSetting) or condition_of(setting) is not None
        together = _beside(base, [*result, setting])
        stands = together is not None and (not limits or together.possible)
        (result if stands else dropped).append(setting)
    return result, dropped


def _note(setting: NodeSetting, pod: PodPlacement, ledger: Ledger) -> None:
    match setting:
        case MemberSetting():
            said = pod.node_selector.get(setting.key)
            if said == setting.value:
                ledger.note(setting, "kept", "the pod says so itself")
            elif said is None:
                ledger.note(setting, "set", quoted(setting.value))
            elif setting.part != "requirements":  # which has rejected the pod, and said so
                wanted, other = quoted_both(setting.value, said)
                ledger.note(setting, "set", f"{wanted} instead of {other}")
        case RequiredSetting():
            ledger.note(setting, "set", "set" if pod.required is None else "ANDed into every term")
        case CapacitySetting():
            ledger.note(setting, "set", setting.wanted)
