"""What Polyaxon 2 lets stand beside `run`, as a patch of the runtime.

Read in polyaxon 2.18 (`_flow/polyaxonfile.py`: apply_shortcuts). ports choose a service where there
is no runtime yet, the others a job; cmd is one script and never merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components.patch import patched
from webhook.convert.polyaxon.components.runtimes import JOB, SERVICE
from webhook.convert.polyaxon.components.spread import spread
from webhook.convert.polyaxon.values import want_mapping, want_text, want_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

FIELDS: Final = (
    "ports",
    "container",
    "cmd",
    "env",
    "resources",
    "environment",
    "init",
    "connections",
    "sidecars",
    "volumes",
)
_GPU: Final = ("gpu", "nvidia.com/gpu")
_NO_DEVICES: Final = ("cpu", "memory")


def applied(run: Item | None, document: Item, strategy: str, notes: Notes) -> Item | None:
    """The runtime with the document's shortcuts upon it; None if there is no runtime at all."""
    run = run or _chosen(document)
    for name in FIELDS:
        item = document.entries.get(name)
        if run is None or item is None or item.value is None:
            continue
        patch = spread(run, _patch(name, item, notes))
        if name != "cmd":
            run = patched(run, patch, strategy)
        else:
            keeps = strategy in ("pre_merge", "isnull")
            run = patched(run, _where_silent(patch, run) if keeps else patch, "replace")
    return run


def _patch(name: str, item: Item, notes: Notes) -> Item:
    """One shortcut as a patch of a runtime of one pod."""
    if name == "cmd":
        return _in_container(item, _script(item, notes))
    if name == "env":
        variables = tuple(
            value.holding({"name": value.saying(key), "value": value})
            for key, value in want_mapping(item, notes).items()
        )
        return _in_container(item, {"env": item.holding(variables)})
    if name == "resources":
        return _in_container(item, {"resources": _sides(item, notes)})
    return item.holding({name: item})


def _chosen(document: Item) -> Item | None:
    """The runtime that shortcuts choose where no other is given."""
    given = [name for name in FIELDS if document.entries.get(name) is not None]
    if not given:
        return None
    kind = SERVICE if "ports" in given else JOB
    first = document.entries[given[0]]
    return first.holding({"kind": first.saying(kind)})


def _in_container(item: Item, fields: Mapping[str, Item]) -> Item:
    return item.holding({"container": item.holding(dict(fields))})


def _script(item: Item, notes: Notes) -> dict[str, Item]:
    lines = ["set -e", *want_texts(item, notes)]
    shell = (item.saying("/bin/sh"), item.saying("-c"))
    return {
        "command": item.holding(shell),
        "args": item.holding((item.saying("\n".join(lines)),)),
    }


def _sides(item: Item, notes: Notes) -> Item:
    """`cpu: 1..2` is request and limit, `cpu: 1` a request; of a device both are the same."""
    requests: dict[str, Item] = {}
    limits: dict[str, Item] = {}
    for key, amount in want_mapping(item, notes).items():
        text = want_text(amount, notes)
        if text is None:
            continue
        low, is_range, high = (part.strip() for part in text.partition(".."))
        name = _GPU[1] if key == _GPU[0] else key
        if low:
            requests[name] = amount.saying(low)
        if is_range and high:
            limits[name] = amount.saying(high)
        elif not is_range and key not in _NO_DEVICES:
            limits[name] = amount.saying(low)
    sides = {"requests": item.holding(requests), "limits": item.holding(limits)}
    return item.holding({side: each for side, each in sides.items() if each.entries})


def _where_silent(patch: Item, run: Item) -> Item:
    """The patch of a command, but for containers that say themselves what to do."""
    container = run.entries.get("container")
    if container is not None and any(
        container.entries.get(name) is not None for name in ("command", "args")
    ):
        return patch.holding({k: each for k, each in patch.entries.items() if k != "container"})
    below = {
        key: _where_silent(each, run.entries[key])
        for key, each in patch.entries.items()
        if key != "container" and key in run.entries
    }
    return patch.holding({**patch.entries, **below})
