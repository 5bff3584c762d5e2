"""Fields by the names that people, stamps and traces give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.comparison.gaps import REQUIRED
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.provenance import MAPS
from webhook.placement.wishes import CapacityWish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.wishes import Wish
    from webhook.policy.policy_set import PolicySet

_KEYED: Final = (*MAPS, "tolerations", "capacity", "topologySpreadConstraints")
# As JSONPath begins, as templates hold a pod's fields, and as a pod does.
_PREFIXES: Final = (".", "spec.template.", "spec.", "metadata.")
# What the names of a pod's affinities all end with, and say nothing by.
_ENDING: Final = "DuringSchedulingIgnoredDuringExecution"
_CAPACITY: Final = re.compile(r"capacity\[(.*)\]")


def field_path(said: str) -> str:
    """A path as stamps and traces write it: `spec.nodeSelector.pool` is nodeSelector[pool]."""
    path = said.strip().replace(_ENDING, "")
    for prefix in _PREFIXES:
        path = path.removeprefix(prefix)
    holder, dot, key = path.partition(".")
    return f"{holder}[{key}]" if dot and key and holder in _KEYED else path


def is_within(field: str, path: str) -> bool:
    """Whether a field is the one at the path, or one below it."""
    return field == path or field.startswith((f"{path}[", f"{path}."))


def touched(field: str, path: str, policies: PolicySet) -> bool:
    """Whether whoever has a say in `field` has one in what is at the path.

    A capacity class stands for the tolerations of its taints, and for node affinity.
    """
    if is_within(field, path):
        return True
    found = _CAPACITY.fullmatch(field)
    known = policies.classes.get(found[1]) if found else None
    return known is not None and any(is_within(each, path) for each in _of_class(known))


def says_of(wish: Wish, path: str) -> bool:
    """Whether a policy's wish has a say in what is at the path."""
    if is_within(wish.field, path):
        return True
    if not isinstance(wish, CapacityWish) or wish.mode == "None":
        return False
    return any(is_within(each, path) for each in _of_class(wish.capacity))


def _of_class(capacity: CapacityClass) -> Iterator[str]:
    yield from (f"tolerations[{each.get('key') or '*'}]" for each in capacity.tolerations)
    yield REQUIRED
    yield PREFERRED_NODES
