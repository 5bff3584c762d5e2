"""The runtimes of components, and fields beside `run` as a patch of the runtime.

Sources in polyaxon 2.18, and in the releases before it for runtimes that it dropped: `_flow/run/`
(runtimes); `_flow/polyaxonfile.py`, apply_shortcuts (ports choose a service where there is no
runtime yet, the others a job; cmd is one script and never merged); `_flow/run/patch.py`,
validate_run_patch (a patch that does not fit the runtime is one of each of its replicas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components.runtime_patch import patched
from webhook.convert.polyaxon.values import want_mapping, want_text, want_texts
from webhook.frameworks.framework import PolyaxonRuntime
from webhook.frameworks.table import POLYAXON_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Notes
    from webhook.convert.polyaxon.item import Item

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
JOB: Final = "job"
SERVICE: Final = "service"
RUNTIMES: Final[Mapping[str, PolyaxonRuntime]] = {
    JOB: PolyaxonRuntime("job"),
    SERVICE: PolyaxonRuntime("service"),
    **POLYAXON_RUNTIMES,
}
# Runtimes that cannot become a Run.
REFUSED: Final[Mapping[str, str]] = {
    "dag": "a Run is one run; write one for each operation of the dag",
    "matrix": "a Run is one run; write one for each combination",
    "schedule": "a Run starts once; a CronJob that creates Runs starts them by the clock",
    "spark": "write a Run of framework spark: a driver, which makes its own executors",
    "flink": "there are no runs of Flink",
    "notifier": "Fairlead sends no notifications; watch the Run's events and conditions",
    "tuner": "Fairlead tunes nothing; Katib does",
    "watchdog": "Fairlead has no watchdogs; set termination.timeout",
    "cleaner": "Fairlead keeps no artifacts that would have to be cleaned",
    "builder": "Fairlead builds no images; kaniko does, in a Run of kind build that you write",
}
# Fields of a replica that a distributed runtime does not have.
_OF_REPLICAS: Final = frozenset(
    {"replicas", "environment", "connections", "volumes", "init", "sidecars", "container"}
)


def applied(run: Item | None, document: Item, strategy: str, notes: Notes) -> Item | None:
    """Return the runtime with the document's shortcuts applied; None if there is no runtime."""
    run = run or _shortcut_runtime(document)
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
    """Convert one shortcut to a patch of a runtime of one pod."""
    if name == "cmd":
        return _in_container(item, _script(item, notes))
    if name == "env":
        variables = tuple(
            value.with_value({"name": value.with_text(key), "value": value})
            for key, value in want_mapping(item, notes).items()
        )
        return _in_container(item, {"env": item.with_value(variables)})
    if name == "resources":
        return _in_container(item, {"resources": _sides(item, notes)})
    return item.with_value({name: item})


def _shortcut_runtime(document: Item) -> Item | None:
    """Return the runtime that the shortcuts imply if none is given."""
    given = [name for name in FIELDS if document.entries.get(name) is not None]
    if not given:
        return None
    kind = SERVICE if "ports" in given else JOB
    first = document.entries[given[0]]
    return first.with_value({"kind": first.with_text(kind)})


def _in_container(item: Item, fields: Mapping[str, Item]) -> Item:
    return item.with_value({"container": item.with_value(dict(fields))})


def _script(item: Item, notes: Notes) -> dict[str, Item]:
    lines = ["set -e", *want_texts(item, notes)]
    shell = (item.with_text("/bin/sh"), item.with_text("-c"))
    return {
        "command": item.with_value(shell),
        "args": item.with_value((item.with_text("\n".join(lines)),)),
    }


def _sides(item: Item, notes: Notes) -> Item:
    """Parse `cpu: 1..2` as request and limit, `cpu: 1` as a request; for devices both are equal."""
    requests: dict[str, Item] = {}
    limits: dict[str, Item] = {}
    for key, amount in want_mapping(item, notes).items():
        text = want_text(amount, notes)
        if text is None:
            continue
        low, is_range, high = (part.strip() for part in text.partition(".."))
        name = _GPU[1] if key == _GPU[0] else key
        if low:
            requests[name] = amount.with_text(low)
        if is_range and high:
            limits[name] = amount.with_text(high)
        elif not is_range and key not in _NO_DEVICES:
            limits[name] = amount.with_text(low)
    sides = {"requests": item.with_value(requests), "limits": item.with_value(limits)}
    return item.with_value({side: each for side, each in sides.items() if each.entries})


def _where_silent(patch: Item, run: Item) -> Item:
    """Return the patch of a command for containers without a command of their own."""
    container = run.entries.get("container")
    if container is not None and any(
        container.entries.get(name) is not None for name in ("command", "args")
    ):
        return patch.with_value({k: each for k, each in patch.entries.items() if k != "container"})
    below = {
        key: _where_silent(each, run.entries[key])
        for key, each in patch.entries.items()
        if key != "container" and key in run.entries
    }
    return patch.with_value({**patch.entries, **below})


def replicas_of(run: Item) -> dict[str, Item]:
    """Return the replicas of a distributed runtime by field or group; {} for other runtimes.

    A group's key is `workers/<name>`.
    """
    kind = run.entries.get("kind")
    runtime = RUNTIMES.get(kind.as_text) if kind is not None else None
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
    """Convert the patch to a patch of the runtime."""
    replicas = replicas_of(run)
    if not replicas or not patch.entries or not set(patch.entries) <= _OF_REPLICAS:
        return patch
    result: dict[str, Item] = {}
    groups: dict[str, Item] = {}
    for name in replicas:
        field, _, group = name.partition("/")
        if group:
            groups[group] = patch
            result[field] = patch.with_value(groups)
        else:
            result[field] = patch
    return patch.with_value(result)
