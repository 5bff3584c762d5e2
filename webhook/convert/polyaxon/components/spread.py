"""A patch of one pod, for each replica of a distributed runtime.

Read in polyaxon 2.18 (`_flow/run/patch.py`: validate_run_patch): a patch that does not fit the
runtime itself is taken for one of every replica that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components.runtimes import RUNTIMES

if TYPE_CHECKING:
    from webhook.convert.polyaxon.item import Item

# Fields that a replica has, and a distributed runtime has not.
_OF_REPLICAS: Final = frozenset(
    {"replicas", "environment", "connections", "volumes", "init", "sidecars", "container"}
)


def replicas_of(run: Item) -> dict[str, Item]:
    """The replicas of a distributed runtime by their fields; of groups by group. {} if it is none.

    A group's key is `workers/<name>`.
    """
    kind = run.entries.get("kind")
    runtime = RUNTIMES.get(kind.written) if kind is not None else None
    if runtime is None or not runtime.roles:
        return {}
    entries = run.entries
    found = {
        name: entries[name]
        for name in runtime.roles.values()
        if name in entries and entries[name].value is not None
    }
    groups = entries.get(runtime.groups) if runtime.groups else None
    for name, group in groups.entries.items() if groups is not None else ():
        found[f"{runtime.groups}/{name}"] = group
    return found


def spread(run: Item, patch: Item) -> Item:
    """The patch as one of the runtime."""
    replicas = replicas_of(run)
    if not replicas or not patch.entries or not set(patch.entries) <= _OF_REPLICAS:
        return patch
    result: dict[str, Item] = {}
    groups: dict[str, Item] = {}
    for name in replicas:
        field, _, group = name.partition("/")
        if group:
            groups[group] = patch
            result[field] = patch.holding(groups)
        else:
            result[field] = patch
    return patch.holding(result)
