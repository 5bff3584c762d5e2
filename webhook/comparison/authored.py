"""The part of a placed pod that its author wrote; policies are credited with the rest.

A stamp credits by content (decision 9): a policy is credited with a field that has the value that
the policy sets. Without these values, the same policies would place the pod in the same way. They
restore an equal value of the author. A value that they replaced is lost, unless the author's own
template or file is also known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from webhook import names
from webhook.placement import capacity_request, node_affinity
from webhook.placement.capacity import MODES
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fields import BY_NAME, OF_PODS, Shape
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES, REQUIRED_NODES
from webhook.placement.provenance import without_class, without_field

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass, Mode
    from webhook.placement.fields import Field
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Requirement, Term, Toleration
    from webhook.policy.policy_set import PolicySet

T = TypeVar("T")
_NAME: Final = re.compile(r"\w*")
# Taints of a node's state, which admission plugins and the DaemonSet controller let pods tolerate.
_OF_STATE: Final = "node.kubernetes.io/"
_TOLERATIONS: Final = "tolerations"
# Fields that a capacity class can set.
_OF_CLASS: Final = frozenset({_TOLERATIONS, REQUIRED_NODES, PREFERRED_NODES})


class Credit(NamedTuple):
    """A field that a stamp credits to a policy."""

    policy: str
    field: str


class Authored(NamedTuple):
    """The settings that a pod's author wrote, as far as they are known.

    `unsure` are credits of a policy that has changed since: what it set is unknown, so the value
    counts as the author's. `doubtful` are the lists
    that may still have entries of a policy; in all others, what is not in the author's text was
    added by others.
    """

    placement: PodPlacement
    unsure: tuple[Credit, ...] = ()
    doubtful: frozenset[str] = frozenset()


def without_credits(
    placement: PodPlacement, credited: Mapping[str, Sequence[str]], policies: PolicySet
) -> Authored:
    """Return the placement without what a stamp credits: `credited` are fields by policy.

    `policies` have what each policy sets today. What it set then follows from the field's name, if
    that is specific enough.
    """
    settings: dict[tuple[str, str], list[PlacementSetting]] = {}
    for current_policy in policies.policies:
        for setting in current_policy.settings:
            field_settings = settings.setdefault((current_policy.name, setting.field), [])
            field_settings.append(setting)
            if isinstance(setting, CapacitySetting) and setting.fallback:
                field_settings.append(setting.give_up())
    result = placement._replace(annotations=_without(placement.annotations, names.PLACEMENT))
    unsure: list[Credit] = []
    doubtful: set[str] = set()
    # What was ANDed into the required terms. Two of them may share a requirement.
    conditions: list[Sequence[Term] | None] = []
    for policy, fields in credited.items():
        for field in fields:
            # In a pod with nodeName, policies set no field that chooses a node. Its own values
            # there are credited anyway.
            row = BY_NAME.get(_NAME.findall(field)[0])
            if placement.node_name and row and row.chooses_node:
                continue
            held = [
                setting
                for setting in settings.get((policy, field), ())
                if setting.holds_in(placement)
            ]
            conditions += [setting.condition for setting in held]
            undone = result if held else without_field(result, field, policies.classes)
            for setting in held:
                undone = undone and setting.undone(undone)
            if field.startswith("capacity[") and not held:
                # A class that has changed since leaves its old values.
                doubtful |= _OF_CLASS
                capacity_class = policies.classes.get(field[len("capacity[") : -1])
                conditions += (
                    [mode.condition(capacity_class) for mode in MODES] if capacity_class else ()
                )
            if undone is None:
                doubtful.add(field)
                unsure.append(Credit(policy, field))
            else:
                result = undone
    for capacity, mode, weight in _requested_classes(placement, policies.classes):
        result = without_class(result, capacity, weight)
        conditions.append(mode.condition(capacity))
    result = result._replace(required=_relieved(placement.required, conditions))
    return Authored(result, tuple(unsure), frozenset(doubtful))


def _requested_classes(
    placement: PodPlacement, classes: Mapping[str, CapacityClass]
) -> Iterator[tuple[CapacityClass, Mode, int | None]]:
    """Yield the modes that the pod's own annotation requests; they are requested again."""
    try:
        requests = capacity_request.parse(placement.annotations.get(names.CAPACITY, ""), classes)
    except capacity_request.InvalidRequest:
        return
    for request in requests:
        weight = request.weight if request.mode.prefers else None
        yield classes[request.class_name], request.mode, weight


def with_origin(stripped: Authored, origin: PodPlacement) -> Authored:
    """Return the rest of a pod, corrected by the author's own text: a template, or a file.

    Additions of admission plugins and controllers stay, in every field. Labels and annotations
    without credit are taken from the pod: a template does not have each replica's index.
    """
    left, _, doubtful = stripped
    plain = {
        field.attribute: _corrected(
            field, getattr(left, field.attribute), getattr(origin, field.attribute)
        )
        for field in OF_PODS
        if field.shape in (Shape.MAP, Shape.SCALAR)
    }
    plain["annotations"] = _without(plain["annotations"], names.PLACEMENT)
    return Authored(
        left._replace(
            **plain,
            tolerations=_joined(origin.tolerations, _added(left.tolerations, doubtful)),
            required=_required(left.required, origin.required, doubtful),
            lists=_lists(left.lists, origin.lists, doubtful),
            topology_spread=_joined(origin.topology_spread, left.topology_spread),
        )
    )


def _corrected(field: Field, left: Any, origin: Any) -> Any:
    if field.shape is Shape.SCALAR:
        return left if origin == field.unset else origin
    return {**origin, **left} if field.holder == "metadata" else {**left, **origin}


def _added(left: Sequence[Toleration], doubtful: Collection[str]) -> list[Toleration]:
    sure = _TOLERATIONS not in doubtful
    return [
        toleration
        for toleration in left
        if sure or str(toleration.get("key")).startswith(_OF_STATE)
    ]


def _required(
    left: Sequence[Term] | None, origin: list[Term] | None, doubtful: Collection[str]
) -> list[Term] | None:
    """Return the author's terms, and the conditions that others ANDed into each of them."""
    # A term that no node meets is gone, and may have left one of the author's that names a node.
    has_origin_term = any(term in (origin or ()) for term in left or ())
    if (
        node_affinity.only_node(left)
        and not node_affinity.only_node(origin)
        and not has_origin_term
    ):
        # The DaemonSet controller has met the template's own terms, and names the node instead.
        return [{"matchFields": [*((left or [{}])[0].get("matchFields") or ())]}]
    if REQUIRED_NODES in doubtful or not left or left == origin:
        return origin
    if origin is None:
        return [*left]
    added = [
        _minus(term, part) for term in left for part in origin if node_affinity.contains(term, part)
    ]
    alike = bool(added) and all(term == added[0] for term in added)
    return node_affinity.narrowed(origin, added[:1]) if alike and added[0] else origin


def _lists(
    left: Mapping[str, list[JsonObject]],
    origin: Mapping[str, list[JsonObject]],
    doubtful: Collection[str],
) -> dict[str, list[JsonObject]]:
    joined = {
        name: _joined(origin.get(name, []), () if name in doubtful else left.get(name, ()))
        for name in AFFINITY_LISTS
    }
    return {name: entries for name, entries in joined.items() if entries}


def _joined(first: list[T], then: Sequence[T]) -> list[T]:
    return [*first, *(item for item in then if item not in first)]


def _without(members: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in members.items() if name != key}


def _relieved(
    required_terms: Sequence[Term] | None, conditions: Sequence[Sequence[Term] | None]
) -> list[Term] | None:
    """Return required terms without the conditions that were ANDed into them; None if they are all
    of one.
    """
    result: list[Term] = []
    for term in required_terms or ():
        left = term
        for terms in conditions:
            part = next(
                (
                    condition_term
                    for condition_term in terms or ()
                    if node_affinity.contains(term, condition_term)
                ),
                None,
            )
            left = left if part is None else _minus(left, part)
        if node_affinity.is_empty(left) and not node_affinity.is_empty(term):
            return None
        if left not in result:
            result.append(left)
    return result or None


def _minus(term: Term, part: Term) -> Term:
    result: Term = {}
    if left := _without_part(term.get("matchExpressions"), part.get("matchExpressions")):
        result["matchExpressions"] = left
    if left := _without_part(term.get("matchFields"), part.get("matchFields")):
        result["matchFields"] = left
    return result


def _without_part(
    requirements: Sequence[Requirement] | None, part: Sequence[Requirement] | None
) -> list[Requirement]:
    return [requirement for requirement in requirements or () if requirement not in (part or ())]
