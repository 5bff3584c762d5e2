"""A pod's placement as short lines of text, one an item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.admission.arrival import DEFAULT_TOLERATION_SECONDS
from webhook.placement import pod as pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.shapes import JsonObject, Requirement, Term, Toleration

_NODE_CONDITIONS: Final = "node.kubernetes.io/"


class Line(NamedTuple):
    """One item of a field: ("tolerations", "nvidia.com/gpu:NoSchedule")."""

    field: str
    text: str


def placement_lines(pod: JsonObject) -> tuple[Line, ...]:
    """What a v1.Pod says of where it may run; nothing that the API server says for every pod."""
    return tuple(_lines(pods.read(pod)))


def in_short(pod: JsonObject) -> str:
    """What a v1.Pod says of where it may run, in a few words: keys without their prefix."""
    placement = pods.read(pod)
    words = [f"{_short(key)}={value}" for key, value in placement.node_selector.items()]
    terms = placement.required or ()
    if any(term.get("matchFields") for term in terms):
        words.append("a node by its name")
    elif terms:
        words.append(f"one of {len(terms)} terms" if len(terms) > 1 else _term(terms[0]))
    words += [
        f"tolerates {_short(toleration.get('key') or 'everything')}"
        for toleration in placement.tolerations
        if not (toleration.get("key") or "").startswith(_NODE_CONDITIONS)
    ]
    return ", ".join(words) or "nothing"


def _short(key: str) -> str:
    return key.rpartition("/")[2]


def _lines(placement: pods.PodPlacement) -> Iterator[Line]:
    for key, value in placement.node_selector.items():
        yield Line("nodeSelector", f"{key}={value}")
    terms = placement.required or ()
    for number, term in enumerate(terms, 1):
        either = f"{number} of {len(terms)}: " if len(terms) > 1 else ""
        yield Line("nodeAffinity", f"{either}{_term(term)}")
    for text in _tolerations(placement.tolerations):
        yield Line("tolerations", text)
    for name, entries in placement.lists.items():
        for entry in entries:
            yield Line(name.removeprefix("affinity."), _compact(entry))
    for constraint in placement.topology_spread:
        yield Line("topologySpread", _compact(constraint))
    if placement.priority_class_name:
        yield Line("priorityClass", placement.priority_class_name)


def _term(term: Term) -> str:
    requirements = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    return " and ".join(map(_requirement, requirements)) or "nothing, which matches no node"


def _requirement(requirement: Requirement) -> str:
    values = requirement.get("values")
    listed = f" [{', '.join(values)}]" if values else ""
    return f"{requirement.get('key')} {requirement.get('operator')}{listed}"


def _tolerations(tolerations: Sequence[Toleration]) -> Iterator[str]:
    conditions = []
    for toleration in tolerations:
        key = toleration.get("key") or ""
        seconds = toleration.get("tolerationSeconds")
        if seconds is not None and seconds == DEFAULT_TOLERATION_SECONDS.get(key):
            continue
        if key.startswith(_NODE_CONDITIONS) and toleration.get("operator") == "Exists":
            conditions.append(key.removeprefix(_NODE_CONDITIONS))
            continue
        value = f"={toleration['value']}" if toleration.get("value") else ""
        effect = f":{toleration['effect']}" if toleration.get("effect") else ""
        yield f"{key or 'every taint'}{value}{effect}"
    if conditions:
        yield f"node conditions: {', '.join(conditions)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
