"""Merging of what a node's labels must be: nodeSelector, required node affinity, capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.merge_capacity import of_wish
from webhook.placement.merge_verdict import judge_result
from webhook.placement.node_wishes import (
    NodeWish,
    condition_of,
    conjoined,
    node_wishes,
    with_wishes,
)
from webhook.placement.trace import quoted, quoted_both
from webhook.placement.wishes import CapacityWish, MemberWish, RequiredWish

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
        defaults, dropped = candidates, list[NodeWish]()
        together = _beside(base, candidates)
        if together is None or not (apart or together.possible):
            defaults, dropped = _standing(base, candidates)
            together = with_wishes(base, defaults)
        result = _pruned(together, pod)
        # A key is the pod's word as long as a term that names it is left: pruning may end that.
        left = named & node_affinity.keys(result.terms or ())
        if left == named:
            break
        named = left
    for wish, reason in kept:
        ledger.note(wish, "kept", reason)
    for wish in dropped:
        ledger.warn(wish, "dropped", "stands back: beside the pod's own word no node is left")
    if not apart and not base.possible and not ledger.rejections:
        judge_result(bundle, pod, asked, selector, ledger)
    for wish in (*(w for w in node_wishes(bundle) if not w.is_default), *defaults):
        _note(wish, pod, ledger)
    settled = [of_wish(w) for w in bundle.capacity if not w.is_default]
    settled += asked
    settled += [of_wish(w) for w in defaults if isinstance(w, CapacityWish)]
    return NodeChoice(
        pod.node_selector if result.selector == pod.node_selector else result.selector,
        pod.required if result.terms == pod.required else result.terms,
        settled,
    )


def _freed(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> dict[str, str]:
    """The pod's nodeSelector without what a capacity override cannot be met beside."""
    selector = pod.node_selector
    fixed = bundle.hard.selector
    for wish in bundle.capacity:
        if wish.part != "overrides" or wish.condition is None or not selector:
            continue
        keys = wish.capacity.keys
        kept = {key: value for key, value in fixed.items() if key in keys}
        for key in sorted(keys & selector.keys() - fixed.keys()):
            trial = {**kept, key: selector[key]}
            if node_affinity.satisfiable(wish.condition, trial):
                kept = trial
            else:
                what = f"policy {wish.policy} wants {wish.capacity.name}={wish.mode}"
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
) -> tuple[list[NodeWish], list[tuple[NodeWish, str]]]:
    """The defaults about whose field the pod says nothing, and the others with what it says."""
    result: list[NodeWish] = []
    kept: list[tuple[NodeWish, str]] = []
    for wish in node_wishes(bundle):
        if wish.is_default:
            word = _pods_word(wish, pod, selector, named, spoken)
            if word is None:
                result.append(wish)
            else:
                kept.append((wish, word))
    return result, kept


def _pods_word(
    wish: NodeWish,
    pod: PodPlacement,
    selector: dict[str, str],
    named: frozenset[str],
    spoken: Collection[str],
) -> str | None:
    """What the pod says itself of a default's field, or None."""
    match wish:
        case MemberWish():
            if wish.key in selector:
                return f"the pod says {quoted(selector[wish.key])}"
            if wish.if_null and selector:
                return "the pod has a nodeSelector of its own"
            if wish.key in named:
                return "the pod's required affinity names this key"
        case RequiredWish():
            if pod.required is not None:
                return "the pod has required node affinity of its own"
        case CapacityWish():
            if wish.capacity.name in spoken or (wish.if_null and spoken):
                return "the pod's annotation asks for itself"
            if not wish.capacity.keys.isdisjoint(selector) or not wish.capacity.keys.isdisjoint(
                named
            ):
                return "the pod's selector or required affinity speaks of this class"
    return None


def _beside(base: Demand, defaults: Sequence[NodeWish]) -> Demand | None:
    """`base` with defaults beside it; None if there would be more terms than can be computed."""
    try:
        return with_wishes(base, defaults)
    except node_affinity.TooManyTerms:
        return None


def _standing(base: Demand, defaults: Sequence[NodeWish]) -> tuple[list[NodeWish], list[NodeWish]]:
    """The defaults beside which a node is left, taken one after the other, and the others."""
    result: list[NodeWish] = []
    dropped: list[NodeWish] = []
    for wish in defaults:
        limits = isinstance(wish, MemberWish) or condition_of(wish) is not None
        together = _beside(base, [*result, wish])
        stands = together is not None and (not limits or together.possible)
        (result if stands else dropped).append(wish)
    return result, dropped


def _note(wish: NodeWish, pod: PodPlacement, ledger: Ledger) -> None:
    match wish:
        case MemberWish():
            said = pod.node_selector.get(wish.key)
            if said == wish.value:
                ledger.note(wish, "kept", "the pod says so itself")
            elif said is None:
                ledger.note(wish, "set", quoted(wish.value))
            elif wish.part != "requirements":  # which has rejected the pod, and said so
                wanted, other = quoted_both(wish.value, said)
                ledger.note(wish, "set", f"{wanted} instead of {other}")
        case RequiredWish():
            ledger.note(wish, "set", "set" if pod.required is None else "ANDed into every term")
        case CapacityWish():
            ledger.note(wish, "set", wish.wanted)
