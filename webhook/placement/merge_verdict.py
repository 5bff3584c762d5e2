"""Where the pod's own word and the policies leave no node: reject, and quote both.

A pod that no node could run before we saw it is warned, never rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.node_wishes import (
    condition_of,
    conjoined,
    keys_of,
    node_wishes,
    with_wishes,
)
from webhook.placement.trace import quoted
from webhook.placement.wishes import MemberWish

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement

# How much of the pod's own word a message quotes.
_WORDS = 4


def judge(bundle: Bundle, pod: PodPlacement, asked: Sequence[Settled], ledger: Ledger) -> None:
    """Reject a pod whose own word, as it came, contradicts a requirement.

    A pod that contradicts itself is not judged: it was lost before.
    """
    wishes = [w for w in node_wishes(bundle) if w.part == "requirements"]
    if not wishes:
        return
    selector = pod.node_selector
    own = conjoined(pod.required, [a.condition for a in asked])
    if not node_affinity.satisfiable(own, selector):
        return
    for wish in wishes:
        if isinstance(wish, MemberWish):
            said = selector.get(wish.key)
            if said is not None and said != wish.value:
                ledger.reject(wish, f"must be {quoted(wish.value)}; the pod says {quoted(said)}")
            elif not node_affinity.satisfiable(own, {**selector, wish.key: wish.value}):
                ledger.reject(
                    wish, f"must be {quoted(wish.value)}; {_own_word(pod, asked, [wish.key])}"
                )
        elif not node_affinity.satisfiable(conjoined(own, [condition_of(wish)]), selector):
            ledger.reject(wish, f"leaves no node; {_own_word(pod, asked, keys_of(wish))}")


def judge_result(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[Settled],
    selector: dict[str, str],
    ledger: Ledger,
) -> None:
    """Requirements and overrides leave no node: reject, unless the pod was lost before."""
    own = conjoined(pod.required, [a.condition for a in asked])
    if not node_affinity.satisfiable(own, pod.node_selector):
        ledger.warn_pod("nodeSelector, affinity", "kept", "no node can meet what the pod says")
        return
    hard = [w for w in node_wishes(bundle) if not w.is_default]
    guilty = [wish for wish in hard if not with_wishes(Demand(selector, own), [wish]).possible]
    for wish in guilty or hard:
        what = (
            f"{quoted(wish.value)} leaves no node"
            if isinstance(wish, MemberWish)
            else "leaves no node"
        )
        ledger.reject(wish, f"{what}; {_own_word(pod, asked, keys_of(wish))}")


def _own_word(pod: PodPlacement, asked: Sequence[Settled], keys: Collection[str]) -> str:
    """What the pod says of the label keys, for a message; the first few words are enough."""
    words = [f"nodeSelector {k}={quoted(v)}" for k, v in pod.node_selector.items() if k in keys]
    requirements = (r for term in pod.required or () for r in term.get("matchExpressions") or ())
    for r in requirements:
        if len(words) >= _WORDS:
            break
        if r.get("key") in keys:
            values = r.get("values") or []
            more = ["…"] if len(values) > _WORDS else []
            text = f" {quoted(values[:_WORDS] + more)}" if values else ""
            word = f"required affinity {r.get('key')} {r.get('operator')}{text}"
            if word not in words:
                words.append(word)
    words += [f"annotation {a.capacity.name}={a.mode}" for a in asked if a.capacity.keys & {*keys}]
    return f"the pod says {', '.join(words) if words else 'otherwise'}"
