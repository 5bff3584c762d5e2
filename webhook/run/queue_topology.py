"""What pods ask of a topology of Kueue, by their annotations.

Kueue checks its jobs in their webhooks (pkg/controller/jobframework/tas_validation.go, 0.17), but
no Workload: its scheduler panics at one that breaks a rule, and again at each start.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject

UNCONSTRAINED: Final = f"{names.KUEUE_PREFIX}podset-unconstrained-topology"


def _boolean(text: str) -> bool:
    """As strconv.ParseBool has it. Raises KeyError."""
    return {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}[
        text.lower()
    ]


# The fields of a topologyRequest, by annotations of the pods (pkg/controller/jobframework/tas.go).
_TOPOLOGY: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "required": (f"{names.KUEUE_PREFIX}podset-required-topology", str),
    "preferred": (f"{names.KUEUE_PREFIX}podset-preferred-topology", str),
    "unconstrained": (UNCONSTRAINED, _boolean),
    "podSetSliceRequiredTopology": (f"{names.KUEUE_PREFIX}podset-slice-required-topology", str),
    "podSetSliceSize": (f"{names.KUEUE_PREFIX}podset-slice-size", int),
    "podsetSliceRequiredTopologyConstraints": (
        f"{names.KUEUE_PREFIX}podset-slice-required-topology-constraints",
        json.loads,
    ),
    "podSetGroupName": (f"{names.KUEUE_PREFIX}podset-group-name", str),
}


def read_request(annotations: Mapping[str, str]) -> JsonObject:
    """Return the topologyRequest that the annotations of a pod ask for; empty if for none.

    Raises InvalidRun if one cannot be read.
    """
    request: JsonObject = {}
    for field, (key, read) in _TOPOLOGY.items():
        if key in annotations:
            try:
                request[field] = read(annotations[key])
            except (KeyError, ValueError):
                text = annotations[key]
                raise InvalidRun([f"annotation {key}: {text!r} cannot be read"]) from None
    return request


def find_problems(sets: Sequence[tuple[str, int, JsonObject]]) -> list[str]:
    """Return which rules of Kueue the requests break.

    sets: of each pod set the replicas as text, how many they are, and what they ask for.
    """
    problems = [
        f"annotations of {text}: {problem}"
        for text, count, request in sets
        for problem in _problems(count, request)
    ]
    groups: dict[str, list[tuple[str, int, JsonObject]]] = defaultdict(list)
    for member in sets:
        if (group := member[2].get("podSetGroupName")) is not None:
            groups[group].append(member)
    for group, members in groups.items():
        texts = ", ".join(text for text, _, _ in members)
        if len(members) != 2 or all(count > 1 for _, count, _ in members):
            problems.append(
                f"annotation {_key('podSetGroupName')}: group {group} has {texts}; want two sets "
                "of pods, one of them of one pod (replicas that differ in resources or placement "
                "are sets of their own)"
            )
        elif (
            len({(request.get("required"), request.get("preferred")) for _, _, request in members})
            > 1
        ):
            problems.append(
                f"annotation {_key('podSetGroupName')}: {texts} of group {group} ask for "
                "different topologies; want the same"
            )
    return problems


def _problems(count: int, request: JsonObject) -> Iterator[str]:
    chosen = [
        _key(field) for field in ("required", "preferred", "unconstrained") if field in request
    ]
    if len(chosen) > 1:
        yield f"{', '.join(chosen)} exclude each other: give one"
    size, slices, levels = (
        "podSetSliceSize",
        "podSetSliceRequiredTopology",
        "podsetSliceRequiredTopologyConstraints",
    )
    if levels in request and not request.keys().isdisjoint((size, slices)):
        yield f"{_key(levels)} excludes {_key(slices)} and {_key(size)}"
    if (size in request) != (slices in request):
        yield f"{_key(slices)} and {_key(size)} belong together: give both"
    if not 1 <= request.get(size, 1) <= count:
        yield f"{_key(size)} is {request[size]}; want 1 to {count}, as many as the pods are"
    if (group := request.get("podSetGroupName")) is not None:
        if group.isascii() and group.isdecimal():
            yield f"{_key('podSetGroupName')} is {group!r}; want a name that is no number"
        if not request.keys().isdisjoint((size, slices, levels)):
            yield f"{_key('podSetGroupName')} excludes slices"
        if request.keys().isdisjoint(("required", "preferred")):
            yield (f"{_key('podSetGroupName')} needs {_key('required')} or {_key('preferred')}")


def _key(field: str) -> str:
    return _TOPOLOGY[field][0]
