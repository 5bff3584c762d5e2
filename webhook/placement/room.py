"""Whether a node, were it empty, had room for a pod: the scheduler's NodeResourcesFit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_PODS = "pods"


class Lack(NamedTuple):
    """What of a resource is asked, and the less that there is; as the scheduler counts."""

    resource: str
    asked: int
    there: int


def lacking(requests: Mapping[str, int], allocatable: Mapping[str, int] | None) -> Lack | None:
    """The first resource, by name, of which the pod asks for more than the node can give at all.

    None too if the node does not say what it has. What other pods use of it is not asked.
    """
    if allocatable is None:
        return None
    if allocatable.get(_PODS, 0) < 1:
        return Lack(_PODS, 1, allocatable.get(_PODS, 0))
    if all(allocatable.get(name, 0) >= asked for name, asked in requests.items()):
        return None
    return min(
        Lack(name, asked, allocatable.get(name, 0))
        for name, asked in requests.items()
        if allocatable.get(name, 0) < asked
    )
