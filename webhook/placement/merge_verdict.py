"""Reject a pod if it and the policies together leave no node.

A pod that no node could run before we saw it is warned, never rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.bundle import Demand, conjoined, with_settings
from webhook.placement.settings import MemberSetting
from webhook.placement.trace import quoted, quoted_both

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity_setting import CapacitySetting
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term
    from webhook.placement.trace import Ledger

# How many of the pod's own conditions a message quotes.
_WORDS = 4
UNCHECKED: Final = "cannot be checked for a pod with nodeName; remove nodeName"


def judge(
    bundle: Bundle, pod: PodPlacement, asked: Sequence[CapacitySetting], ledger: Ledger
) -> None:
    """Reject a pod whose own fields, as they were sent, contradict a requirement.

    A pod that contradicts itself had no node before: its terms are not checked. A nodeSelector key
    with another value is rejected in any case, because an override may change the value by which
    the pod contradicts itself.
    """
    settings = [w for w in bundle.on_nodes if w.part == "requirements"]
    if not settings:
        return
    selector = pod.node_selector
    if pod.operating_system:
        # No scheduler reads spec.os, and a kubelet of another system rejects the pod.
        selector = {names.OS_LABEL: pod.operating_system, **selector}
    terms = conjoined(pod.required, [a.condition for a in asked])
    possible = node_affinity.satisfiable(terms, selector)
    for setting in settings:
        if isinstance(setting, MemberSetting):
            pod_value = selector.get(setting.key)
            if pod_value is not None and pod_value != setting.value:
                wanted, other = quoted_both(setting.value, pod_value)
                ledger.reject(setting, f"must be {wanted}; the pod has {other}")
            elif possible and not node_affinity.satisfiable(
                terms, {**selector, setting.key: setting.value}
            ):
                ledger.reject(
                    setting,
                    f"must be {quoted(setting.value)}; {_own_word(pod, asked, [setting.key])}",
                )
        elif possible and not node_affinity.satisfiable(
            conjoined(terms, [setting.condition]), selector
        ):
            ledger.reject(setting, f"leaves no node; {_own_word(pod, asked, setting.node_keys)}")


def judge_node(bundle: Bundle, pod: PodPlacement, node: Node | None, ledger: Ledger) -> None:
    """Reject a pod that can run on one node only, if that node does not meet a requirement.

    `node` is None if it is not known. A pod that names it in nodeName passes by the scheduler, so
    nothing that is written into it would hold: what cannot be judged by the node rejects it too.
    Any other pod that names its node leaves the scheduler to hold what is not known here.
    """
    others = [setting for setting in bundle.accepted if setting not in bundle.on_nodes]
    others.sort(key=lambda setting: setting.row.name)
    for setting in (*bundle.on_nodes, *others):
        if setting.part != "requirements" or not setting.scheduler_holds:
            continue
        terms = setting.node_terms
        if terms is None or node is None:
            if pod.node_name:
                ledger.reject(setting, UNCHECKED)
        elif not node_affinity.holds(terms, node.labels, node.name):
            which = "nodeName" if pod.node_name else "the pod's node"
            ledger.reject(setting, f"{which} {node.name} does not meet it; {_labels(node, terms)}")


def _labels(node: Node, terms: Sequence[Term]) -> str:
    """Return the node's values of the label keys that the terms name, for a message."""
    keys = sorted(node_affinity.keys(terms))[:_WORDS]
    shown = [f"{key}={quoted(node.labels[key])}" for key in keys if key in node.labels]
    shown += [f"no {key}" for key in keys if key not in node.labels]
    return f"it has {', '.join(shown)}"


def judge_result(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[CapacitySetting],
    selector: dict[str, str],
    ledger: Ledger,
) -> None:
    """Reject the pod, for which no node is left, unless it already had none."""
    terms = conjoined(pod.required, [a.condition for a in asked])
    if not node_affinity.satisfiable(terms, pod.node_selector):
        ledger.warn_pod("nodeSelector, affinity", "kept", "no node meets the pod's own settings")
        return
    hard = [w for w in bundle.on_nodes if not w.is_default]
    guilty = [
        setting
        for setting in hard
        if not with_settings(Demand(selector, terms), [setting]).possible
    ]
    for setting in guilty or hard:
        what = (
            f"{quoted(setting.value)} leaves no node"
            if isinstance(setting, MemberSetting)
            else "leaves no node"
        )
        ledger.reject(setting, f"{what}; {_own_word(pod, asked, setting.node_keys)}")


def _own_word(pod: PodPlacement, asked: Sequence[CapacitySetting], keys: Collection[str]) -> str:
    """Return the pod's own conditions on the label keys, for a message; the first few are
    enough."""
    words = [f"nodeSelector {k}={quoted(v)}" for k, v in pod.node_selector.items() if k in keys]
    if pod.operating_system and names.OS_LABEL in keys:
        words.append(f"os.name {quoted(pod.operating_system)}")
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
    return f"the pod has {', '.join(words) if words else 'another value'}"
