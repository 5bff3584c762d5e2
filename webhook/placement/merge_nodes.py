"""Merge nodeSelector, required node affinity and capacity, the author's request included."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.bundle import Demand, NodeSetting, conjoined, with_settings
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.merge_verdict import judge_result
from webhook.placement.settings import MemberSetting, RequiredSetting
from webhook.placement.trace import Entry, quoted, quoted_both

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.capacity_request import Request
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term
    from webhook.placement.trace import Ledger

FIELD = f"annotations[{names.CAPACITY}]"


class NodeChoice(NamedTuple):
    """The result: nodeSelector, required terms, and every capacity mode that applies."""

    selector: dict[str, str]
    required: list[Term] | None
    capacity: list[CapacitySetting]


def choose(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[CapacitySetting],
    requested: Collection[str],
    ledger: Ledger,
) -> NodeChoice:
    """Return the node fields of the result. `requested` are the classes that the annotation names.

    Rejections are noted in the ledger; the caller then drops the result.
    """
    selector = _freed(bundle, pod, ledger)
    base = Demand(
        {**selector, **bundle.hard.selector} if bundle.hard.selector else selector,
        conjoined(pod.required, [bundle.hard.terms, *(a.condition for a in asked)]),
    )
    # Folding ensures that a bundle can be met; only the pod's own fields can contradict it.
    apart = pod.required is None and not asked and bundle.term_keys.isdisjoint(selector)
    named = node_affinity.keys(pod.required or ())
    while True:
        candidates, kept = _applicable(bundle, pod, selector, named, requested)
        defaults, dropped = candidates, list[NodeSetting]()
        together = _beside(base, candidates)
        if together is None or not (apart or together.possible):
            defaults, dropped = _split_defaults(base, candidates)
            together = with_settings(base, defaults)
        result = _pruned(together, pod)
        # A key counts as the pod's own while a term that names it is left; pruning may remove it.
        left = named & node_affinity.keys(result.terms or ())
        if left == named:
            break
        named = left
    for setting, reason in kept:
        ledger.note(setting, "kept", reason)
    lost = not apart and not base.possible
    for setting in dropped:
        if lost:
            # The default is not the reason, and its author gets no warning about it.
            ledger.note(setting, "dropped", "no node meets the pod without it either")
        else:
            what = "yields: no node meets both it and the pod's own settings"
            ledger.warn(setting, "dropped", what)
    if lost and not ledger.rejections:
        judge_result(bundle, pod, asked, selector, ledger)
    for setting in (*(w for w in bundle.on_nodes if not w.is_default), *defaults):
        _note(setting, pod, ledger)
    hard = [w for w in bundle.of(CapacitySetting) if not w.is_default]
    settled = [*hard, *asked, *(w for w in defaults if isinstance(w, CapacitySetting))]
    return NodeChoice(
        pod.node_selector if result.selector == pod.node_selector else result.selector,
        pod.required if result.terms == pod.required else result.terms,
        settled,
    )


def _freed(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> dict[str, str]:
    """Return the pod's nodeSelector without keys that contradict a capacity override."""
    selector = pod.node_selector
    fixed = bundle.hard.selector
    for setting in bundle.of(CapacitySetting):
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
    """Return the result without terms that no node can meet, if it changes and a term is left."""
    if result.terms is None or result == (pod.node_selector, pod.required):
        return result
    kept = node_affinity.pruned(result.terms, result.selector)
    # An empty term is kept, but no node meets it.
    if all(map(node_affinity.is_empty, kept)):
        return result
    return Demand(result.selector, kept)


def _applicable(
    bundle: Bundle,
    pod: PodPlacement,
    selector: dict[str, str],
    named: frozenset[str],
    requested: Collection[str],
) -> tuple[list[NodeSetting], list[tuple[NodeSetting, str]]]:
    """Return the defaults for fields that the pod leaves unset, and the others with the pod's
    value.
    """
    result: list[NodeSetting] = []
    kept: list[tuple[NodeSetting, str]] = []
    for setting in bundle.on_nodes:
        if setting.is_default:
            reason = _precedence_reason(setting, pod, selector, named, requested)
            if reason is None:
                result.append(setting)
            else:
                kept.append((setting, reason))
    return result, kept


def _precedence_reason(
    setting: NodeSetting,
    pod: PodPlacement,
    selector: dict[str, str],
    named: frozenset[str],
    requested: Collection[str],
) -> str | None:
    """Return why the pod's own value takes precedence over a default, or None."""
    match setting:
        case MemberSetting():
            if setting.key in selector:
                return f"the pod has {quoted(selector[setting.key])}"
            if setting.if_null and selector:
                return "the pod has a nodeSelector of its own"
            if setting.key in named:
                return "the pod's required affinity names this key"
        case RequiredSetting():
            if pod.required is not None:
                return "the pod has required node affinity of its own"
        case CapacitySetting():
            if setting.capacity.name in requested or (setting.if_null and requested):
                return "the pod's annotation requests capacity itself"
            if not setting.capacity.keys.isdisjoint(
                selector
            ) or not setting.capacity.keys.isdisjoint(named):
                return "the pod's nodeSelector or required affinity uses a label of this class"
        case _:
            assert_never(setting)
    return None


def _beside(base: Demand, defaults: Sequence[NodeSetting]) -> Demand | None:
    """Return `base` with defaults added; None if there would be too many terms to compute."""
    try:
        return with_settings(base, defaults)
    except node_affinity.TooManyTerms:
        return None


def _split_defaults(
    base: Demand, defaults: Sequence[NodeSetting]
) -> tuple[list[NodeSetting], list[NodeSetting]]:
    """Return the defaults that leave a node, added one after the other, and the other defaults."""
    result: list[NodeSetting] = []
    dropped: list[NodeSetting] = []
    for setting in defaults:
        limits = setting.limits_nodes
        together = _beside(base, [*result, setting])
        leaves_node = together is not None and (not limits or together.possible)
        (result if leaves_node else dropped).append(setting)
    return result, dropped


def _note(setting: NodeSetting, pod: PodPlacement, ledger: Ledger) -> None:
    match setting:
        case MemberSetting():
            pod_value = pod.node_selector.get(setting.key)
            if pod_value == setting.value:
                ledger.note(setting, "kept", "the pod already has this value")
            elif pod_value is None:
                ledger.note(setting, "set", quoted(setting.value))
            elif setting.part != "requirements":  # a requirement has rejected the pod already
                wanted, other = quoted_both(setting.value, pod_value)
                ledger.note(setting, "set", f"{wanted} instead of {other}")
        case RequiredSetting():
            ledger.note(setting, "set", "set" if pod.required is None else "ANDed into every term")
        case CapacitySetting():
            ledger.note(setting, "set", setting.describe_value)
        case _:
            assert_never(setting)


def settle(
    bundle: Bundle,
    requests: Sequence[Request],
    classes: Mapping[str, CapacityClass],
    ledger: Ledger,
) -> list[CapacitySetting]:
    """Return the author's requests that apply. An override on the same class wins."""
    result = []
    for request in requests:
        asked = CapacitySetting(
            policy="",
            part="overrides",
            capacity=classes[request.class_name],
            mode=request.mode,
            weight=request.weight,
        )
        requested = f"{request.class_name}={request.mode}"
        of_class = [w for w in bundle.of(CapacitySetting) if w.capacity is asked.capacity]
        required = _opposed(asked, of_class)
        override = next((w for w in of_class if w.part == "overrides"), None)
        if required is not None:
            ledger.reject(required, f"must be {required.mode}; the annotation has {requested}")
        elif override is not None:
            if (override.mode, override.weight) != (asked.mode, asked.weight):
                what = f"policy {override.policy} decides {request.class_name}={override.mode}"
                ledger.warn_pod(FIELD, "lost", what)
        elif _overruled(asked, bundle):
            ledger.warn_pod(FIELD, "dropped", f"{requested} conflicts with the policies")
        else:
            ledger.trace.append(Entry(FIELD, "", "pod", "set", requested))
            result.append(asked)
    return result


def _opposed(asked: CapacitySetting, of_class: Sequence[CapacitySetting]) -> CapacitySetting | None:
    for setting in of_class:
        if setting.part == "requirements" and not setting.mode.compatible(asked.mode):
            return setting
    return None


def _overruled(asked: CapacitySetting, bundle: Bundle) -> bool:
    """Return whether overrides leave no node for the request; `judge` handles requirements."""
    terms = asked.condition
    return (
        terms is not None
        and _has_node_beside(terms, bundle.demanded)
        and not _has_node_beside(terms, bundle.hard)
    )


def _has_node_beside(terms: Sequence[Term], demand: Demand) -> bool:
    together = terms if demand.terms is None else node_affinity.narrowed(terms, demand.terms)
    return node_affinity.satisfiable(together, demand.selector)
