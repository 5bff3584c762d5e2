"""Merging of what a node's labels must be: nodeSelector, required node affinity, capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.merge_capacity import of_wish
from webhook.placement.wishes import CapacityWish, MemberWish, RequiredWish

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term

# How much of the pod's own word a message quotes.
_WORDS = 4

NodeWish: TypeAlias = MemberWish | RequiredWish | CapacityWish


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """The result: nodeSelector, required terms, and every capacity mode that applies."""

    selector: dict[str, str]
    required: list[Term] | None
    capacity: list[Settled]


def judge(bundle: Bundle, pod: PodPlacement, asked: Sequence[Settled], ledger: Ledger) -> None:
    """Reject a pod whose own word, as it came, contradicts a requirement.

    A pod that contradicts itself is not judged: it was lost before.
    """
    wishes = [w for w in _node_wishes(bundle) if w.part == "requirements"]
    if not wishes:
        return
    selector = pod.node_selector
    own = _and(pod.required, [a.condition for a in asked])
    if not node_affinity.satisfiable(own, selector):
        return
    for wish in wishes:
        if isinstance(wish, MemberWish):
            said = selector.get(wish.key)
            if said is not None and said != wish.value:
                ledger.reject(wish, f"must be {wish.value!r}; the pod says {said!r}")
            elif not node_affinity.satisfiable(own, {**selector, wish.key: wish.value}):
                ledger.reject(wish, f"must be {wish.value!r}; {_own_word(pod, asked, [wish.key])}")
        elif not node_affinity.satisfiable(_and(own, [_condition(wish)]), selector):
            ledger.reject(wish, f"leaves no node; {_own_word(pod, asked, _keys(wish))}")


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
    hard = bundle.hard
    selector = _freed(bundle, pod, ledger)
    base = Demand(
        {**selector, **hard.selector} if hard.selector else selector,
        _and(pod.required, [hard.terms, *(a.condition for a in asked)]),
    )
    # A bundle can be met as it is (it was folded so): only the pod's own word can spoil that.
    apart = pod.required is None and not asked and bundle.term_keys.isdisjoint(selector)
    named = node_affinity.keys(pod.required or ())
    while True:
        candidates, kept = _applicable(bundle, pod, selector, named, spoken)
        defaults, dropped = candidates, list[NodeWish]()
        result = _with(base, candidates)
        if not apart and not result.possible:
            defaults, dropped = _standing(base, candidates)
            result = _with(base, defaults)
        result = _pruned(result, pod)
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
        _say_contradiction(bundle, pod, asked, selector, ledger)
    for wish in (*(w for w in _node_wishes(bundle) if not w.is_default), *defaults):
        _note(wish, pod, ledger)
    settled = [of_wish(w) for w in bundle.capacity if not w.is_default]
    settled += asked
    settled += [of_wish(w) for w in defaults if isinstance(w, CapacityWish)]
    return NodeChoice(
        pod.node_selector if result.selector == pod.node_selector else result.selector,
        pod.required if result.terms == pod.required else result.terms,
        settled,
    )


def _node_wishes(bundle: Bundle) -> tuple[NodeWish, ...]:
    return (*bundle.members.get("nodeSelector", ()), *bundle.required, *bundle.capacity)


def _condition(wish: NodeWish) -> tuple[Term, ...] | None:
    match wish:
        case RequiredWish():
            return wish.terms
        case CapacityWish():
            return wish.condition
    return None


def _keys(wish: NodeWish) -> frozenset[str]:
    match wish:
        case MemberWish():
            return frozenset({wish.key})
        case CapacityWish():
            return wish.capacity.keys
    return node_affinity.keys(wish.terms)


def _and(
    terms: list[Term] | None, conditions: Iterable[Sequence[Term] | None]
) -> list[Term] | None:
    for condition in conditions:
        if condition is not None:
            terms = list(condition) if terms is None else node_affinity.narrowed(terms, condition)
    return terms


def _with(base: Demand, wishes: Sequence[NodeWish]) -> Demand:
    """`base` with the conditions of more wishes."""
    if not wishes:
        return base
    members = {w.key: w.value for w in wishes if isinstance(w, MemberWish)}
    return Demand({**base.selector, **members}, _and(base.terms, map(_condition, wishes)))


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
                ledger.warn_pod(f"nodeSelector[{key}]", "removed", f"{selector[key]!r}: {what}")
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
    for wish in _node_wishes(bundle):
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
                return f"the pod says {selector[wish.key]!r}"
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


def _standing(base: Demand, defaults: Sequence[NodeWish]) -> tuple[list[NodeWish], list[NodeWish]]:
    """The defaults beside which a node is left, taken one after the other, and the others."""
    result: list[NodeWish] = []
    dropped: list[NodeWish] = []
    for wish in defaults:
        limits = isinstance(wish, MemberWish) or _condition(wish) is not None
        stands = not limits or _with(base, [*result, wish]).possible
        (result if stands else dropped).append(wish)
    return result, dropped


def _say_contradiction(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[Settled],
    selector: dict[str, str],
    ledger: Ledger,
) -> None:
    """Requirements and overrides leave no node: reject, unless the pod was lost before."""
    own = _and(pod.required, [a.condition for a in asked])
    if not node_affinity.satisfiable(own, pod.node_selector):
        ledger.warn_pod("nodeSelector, affinity", "kept", "no node can meet what the pod says")
        return
    hard = [w for w in _node_wishes(bundle) if not w.is_default]
    guilty = [wish for wish in hard if not _with(Demand(selector, own), [wish]).possible]
    for wish in guilty or hard:
        what = (
            f"{wish.value!r} leaves no node" if isinstance(wish, MemberWish) else "leaves no node"
        )
        ledger.reject(wish, f"{what}; {_own_word(pod, asked, _keys(wish))}")


def _own_word(pod: PodPlacement, asked: Sequence[Settled], keys: Collection[str]) -> str:
    """What the pod says of the label keys, for a message; the first few words are enough."""
    words = [f"nodeSelector {k}={v!r}" for k, v in pod.node_selector.items() if k in keys]
    requirements = (r for term in pod.required or () for r in term.get("matchExpressions") or ())
    for r in requirements:
        if len(words) >= _WORDS:
            break
        if r.get("key") in keys:
            values = r.get("values") or []
            more = ["…"] if len(values) > _WORDS else []
            text = f" {values[:_WORDS] + more}" if values else ""
            word = f"required affinity {r.get('key')} {r.get('operator')}{text}"
            if word not in words:
                words.append(word)
    words += [f"annotation {a.capacity.name}={a.mode}" for a in asked if a.capacity.keys & {*keys}]
    return f"the pod says {', '.join(words) if words else 'otherwise'}"


def _note(wish: NodeWish, pod: PodPlacement, ledger: Ledger) -> None:
    match wish:
        case MemberWish():
            said = pod.node_selector.get(wish.key)
            if said == wish.value:
                ledger.note(wish, "kept", "the pod says so itself")
            elif said is None:
                ledger.note(wish, "set", f"{wish.value!r}")
            else:
                ledger.note(wish, "set", f"{wish.value!r} instead of {said!r}")
        case RequiredWish():
            ledger.note(wish, "set", "set" if pod.required is None else "ANDed into every term")
        case CapacityWish():
            ledger.note(wish, "set", wish.mode)
