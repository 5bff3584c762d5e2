"""What a decided pod demands of a node's labels, each condition with the policy that brought it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement import capacity_request, label_values, node_affinity, provenance
from webhook.placement.node_settings import condition_of
from webhook.placement.nodes import written
from webhook.placement.settings import CapacitySetting
from webhook.placement.shortfall import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.admission.decision import Decision
    from webhook.placement.capacity import Mode
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Term
    from webhook.policy.policy_set import PolicySet

# What has more terms, requirements or keys than anybody writes is told of as a whole.
_MOST: Final = 32
_WHOLE: Final = "required affinity"


def demands(
    own: PodPlacement, final: PodPlacement, decision: Decision, policies: PolicySet
) -> list[Condition]:
    """The conditions that `final`'s nodeSelector and required affinity are made of.

    `own` is the pod as it came, `final` as it is decided.
    """
    result = _of_selector(final, decision)
    if final.required is None:
        return result
    if max(len(final.required), len(own.required or ())) > _MOST:
        return [*result, Condition(_WHOLE, "", final.required)]
    return [*result, *_of_policies(final, decision, policies), *_of_pod(own, final, policies)]


def whole(final: PodPlacement) -> Condition | None:
    """The required affinity as one condition, for what `demands` does not say of it."""
    return None if final.required is None else Condition(_WHOLE, "", final.required)


def _of_selector(final: PodPlacement, decision: Decision) -> list[Condition]:
    selector = final.node_selector
    if len(selector) > _MOST:
        every = [label_values.equal(key, value) for key, value in selector.items()]
        return [Condition("nodeSelector", "", ({"matchExpressions": every},))]
    setters = {e.field: e.policy for e in decision.trace if e.outcome == "set"}
    return [
        Condition(f"{key}={value}", setters.get(f"nodeSelector[{key}]", ""), _pair(key, value))
        for key, value in selector.items()
    ]


def _pair(key: str, value: str) -> Sequence[Term]:
    return ({"matchExpressions": [label_values.equal(key, value)]},)


def _of_policies(
    final: PodPlacement, decision: Decision, policies: PolicySet
) -> Iterator[Condition]:
    """What is in the pod's required affinity by a policy's setting."""
    applied = {(e.policy, e.field) for e in decision.trace if e.outcome == "set"}
    took_part = set(decision.policies)
    for policy in policies.policies:
        if policy.name in took_part:
            for setting in policy.settings:
                terms = condition_of(setting)
                if (
                    terms
                    and (policy.name, setting.field) in applied
                    and provenance.holds(setting, final)
                ):
                    yield from _conditions(_text(setting), policy.name, terms)


def _text(setting: PlacementSetting) -> str:
    return (
        _of_class(setting.capacity.name, setting.mode)
        if isinstance(setting, CapacitySetting)
        else ""
    )


def _of_class(name: str, mode: Mode) -> str:
    return f"class {name}" if mode.requires else f"outside class {name}"


def _of_pod(own: PodPlacement, final: PodPlacement, policies: PolicySet) -> Iterator[Condition]:
    """What is in it because the pod says so: its own terms, and what it asks of classes."""
    text = own.annotations.get(names.CAPACITY)
    for request in capacity_request.parse(text, policies.classes) if text else ():
        terms = request.mode.condition(policies.classes[request.class_name])
        if terms and _implied(terms, final):
            yield Condition(_of_class(request.class_name, request.mode), "", terms)
    if own.required is not None and _implied(own.required, final):
        yield from _conditions("", "", own.required)


def _implied(terms: Sequence[Term], final: PodPlacement) -> bool:
    return all(node_affinity.implies(term, terms) for term in final.required or ())


def _conditions(text: str, policy: str, terms: Sequence[Term]) -> Iterator[Condition]:
    """A condition for each requirement of a single term; else one for all terms."""
    requirements = terms[0].get("matchExpressions") or () if len(terms) == 1 else ()
    if text or len(terms) != 1 or terms[0].get("matchFields") or len(requirements) > _MOST:
        yield Condition(text or _WHOLE, policy, terms)
        return
    for requirement in requirements:
        yield Condition(written(requirement), policy, ({"matchExpressions": [requirement]},))
