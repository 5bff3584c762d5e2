"""Fields by the names that people, stamps and traces give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.comparison.gaps import REQUIRED
from webhook.placement.fields import BY_NAME, FIELDS, Shape
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES
from webhook.placement.schema.placement import PlacementSettings
from webhook.placement.schema.security import PodSecurityContext
from webhook.placement.settings import CapacitySetting
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.settings import PlacementSetting
    from webhook.policy.policy_set import PolicySet

_KEYED: Final = frozenset(field.name for field in FIELDS if field.keyed_by)
# As JSONPath begins, as templates hold a pod's fields, and as a pod does.
_PREFIXES: Final = (".", "spec.template.", "spec.", "metadata.")
# What the names of a pod's affinities all end with, and say nothing by.
_ENDING: Final = "DuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = (REQUIRED, *AFFINITY_LISTS)
_CAPACITY: Final = re.compile(r"capacity\[(.*)\]")


def field_path(said: str) -> str:
    """A path as stamps and traces write it: `spec.nodeSelector.pool` is nodeSelector[pool]."""
    path = said.strip().replace(_ENDING, "")
    for prefix in _PREFIXES:
        path = path.removeprefix(prefix)
    holder, dot, key = path.partition(".")
    return f"{holder}[{key}]" if dot and key and holder in _KEYED else path


def unknown_field(path: str) -> str:
    """Why no policy can have a say in what is at the path, with the cure; empty if one can."""
    word, key = re.split(r"[.\[]", path, maxsplit=1)[0], path.partition("[")[2].removesuffix("]")
    known = PlacementSettings.outer_names()
    if word not in known:
        return f"no policy can set it{guess(word, known) or _listed(known)}"
    if path == word:
        return ""
    if word == "affinity":
        fits = any(is_within(each, path) for each in _AFFINITY)
        return "" if fits else f"there is no such affinity{_listed(_AFFINITY)}"
    if word not in _KEYED:
        return f"{word} has no parts: give --field {word}"
    named = f"{word}[{BY_NAME[word].keyed_by}]"
    if not (path.startswith(f"{word}[") and path.endswith("]") and key):
        return f"a part of it is named as in {named}"
    if BY_NAME[word].shape is Shape.LIST and key.isdigit():
        return f"an entry is named as in {named}, and not by its place"
    members = PodSecurityContext.outer_names()
    if word == "securityContext" and key not in members:
        return f"no policy can set it{guess(key, members) or _listed(members)}"
    return ""


def _listed(names: Sequence[str]) -> str:
    return f"; it is one of {', '.join(names)}"


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


def says_of(setting: PlacementSetting, path: str) -> bool:
    """Whether a policy's setting has a say in what is at the path."""
    if is_within(setting.field, path):
        return True
    if not isinstance(setting, CapacitySetting) or setting.mode.does_nothing:
        return False
    return any(is_within(each, path) for each in _of_class(setting.capacity))


def _of_class(capacity: CapacityClass) -> Iterator[str]:
    yield from (f"tolerations[{each.get('key') or '*'}]" for each in capacity.tolerations)
    yield REQUIRED
    yield PREFERRED_NODES
