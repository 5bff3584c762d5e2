"""Apply an operation's patch to its component, by Polyaxon's four strategies.

Read in clipped 0.14 (`config/schema.py`: patch_obj, patch_swagger_field, patch_normal_merge) and
polyaxon 2.18 (`_flow/run/patch.py`). Polyaxon patches its own objects, containers and affinities
field by field. Anything else is a value:

    replace      the patch's value
    isnull       the current value; the patch's value if there is none
    post_merge   maps are merged by key at every depth, and the patch's key wins; lists are joined
                 without duplicates; otherwise the patch's value
    pre_merge    the same with patch and current value exchanged

A list inside of a map is a value of that map. A null in the patch clears the field under replace
and post_merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import Item, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

STRATEGIES: Final = ("replace", "isnull", "post_merge", "pre_merge")
DEFAULT: Final = "post_merge"

# Fields with an object of Polyaxon or Kubernetes, which is patched field by field.
_OBJECTS: Final = frozenset(
    {
        "run",
        "termination",
        "plugins",
        "cache",
        "build",
        "environment",
        "container",
        "affinity",
        "securityContext",
        "dnsConfig",
        "schedulingPolicy",
        "elasticPolicy",
        "autoscalerOptions",
        "culling",
        "probe",
    }
)
_REPLICAS: Final = frozenset(
    {
        "chief",
        "master",
        "worker",
        "ps",
        "evaluator",
        "launcher",
        "scheduler",
        "server",
        "head",
        "workers",
        "job",
    }
)
# Inside of a container these are values, although a replica has objects of the same names.
_CONTAINER: Final = "container"
# Ray's workers: replicas by the name of their group.
_GROUPS: Final = "workers"


def patched(current: Item, patch: Item, strategy: str) -> Item:
    """Return an object with the patch applied; changes neither."""
    return _object(current, patch, strategy, _OBJECTS | _REPLICAS)


def _object(current: Item, patch: Item, strategy: str, objects: Collection[str]) -> Item:
    result = dict(current.entries)
    for key, value in patch.entries.items():
        result[key] = _field(key, result.get(key), value, strategy, objects)
    return current.with_value(result)


def _groups(current: Item, patch: Item, strategy: str, objects: Collection[str]) -> Item:
    """Patch groups of replicas: the patch changes existing groups, and adds none."""
    return current.with_value(
        {
            name: _object(group, patch.entries[name], strategy, objects)
            if name in patch.entries
            else group
            for name, group in current.entries.items()
        }
    )


def _field(
    key: str, current: Item | None, patch: Item, strategy: str, objects: Collection[str]
) -> Item:
    if current is None or current.value is None:
        return patch
    if key in objects and isinstance(current.value, dict) and isinstance(patch.value, dict):
        if key == _GROUPS:
            return _groups(current, patch, strategy, objects)
        return _object(current, patch, strategy, () if key == _CONTAINER else objects)
    if strategy == "isnull":
        return current
    if strategy == "replace" or patch.value is None:
        return current if patch.value is None and strategy == "pre_merge" else patch
    return _merged(current, patch, strategy)


def _merged(current: Item, patch: Item, strategy: str) -> Item:
    first, then = (current, patch) if strategy == "post_merge" else (patch, current)
    if isinstance(current.value, dict) and isinstance(patch.value, dict):
        return current.with_value(_deep(first.entries, then.entries))
    if isinstance(current.value, tuple) and isinstance(patch.value, tuple):
        known = [plain(element) for element in first.elements]
        new = (element for element in then.elements if plain(element) not in known)
        return current.with_value((*first.elements, *new))
    return then


def _deep(base: Mapping[str, Item], over: Mapping[str, Item]) -> dict[str, Item]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if old is not None and isinstance(old.value, dict) and isinstance(value.value, dict):
            result[key] = value.with_value(_deep(old.entries, value.entries))
        else:
            result[key] = value
    return result
