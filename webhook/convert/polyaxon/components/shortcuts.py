"""The runtimes of components, and fields beside `run` as a patch of the runtime.

Sources in polyaxon 2.18, and in the releases before it for runtimes that it dropped: `_flow/run/`
(runtimes); `_flow/polyaxonfile.py`, apply_shortcuts (ports choose a service where there is no
runtime yet, the others a job; cmd is one script and never merged); `_flow/run/patch.py`,
validate_run_patch (a patch that does not fit the runtime is one of each of its replicas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components.runtime_patch import patched
from webhook.convert.polyaxon.item import want_mapping, want_text, want_texts
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
    named = [document.entries[name] for name in FIELDS if name in document.entries]
    if run is None and named:
        kind = SERVICE if "ports" in document.entries else JOB
        run = named[0].with_value({"kind": named[0].with_text(kind)})
    for name in FIELDS:
        item = document.find(name)
        if run is None or item.value is None:
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
    inner: dict[str, Item] = {}
    if name == "cmd":
        shell = (item.with_text("/bin/sh"), item.with_text("-c"))
        script = item.with_text("\n".join(["set -e", *want_texts(item, notes)]))
        inner = {"command": item.with_value(shell), "args": item.with_value((script,))}
    elif name == "env":
        variables = tuple(
            value.with_value({"name": value.with_text(key), "value": value})
            for key, value in want_mapping(item, notes).items()
        )
        inner = {"env": item.with_value(variables)}
    elif name == "resources":
        inner = {"resources": _sides(item, notes)}
    else:
        return item.with_value({name: item})
    return item.with_value({"container": item.with_value(inner)})


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
    runtime = RUNTIMES.get(run.find("kind").as_text)
    if runtime is None:
        return {}
    fields = {name: run.find(name) for name in runtime.roles.values()}
    found = {name: item for name, item in fields.items() if item.value is not None}
    for name, group in run.find(runtime.groups).entries.items():
        found[f"{runtime.groups}/{name}"] = group
    return found


def spread(run: Item, patch: Item) -> Item:
    """Convert the patch to a patch of the runtime."""
    replicas = replicas_of(run)
    if not replicas or not patch.entries or not set(patch.entries) <= _OF_REPLICAS:
        return patch
    fields = [name.partition("/") for name in replicas]
    groups = patch.with_value({group: patch for _, _, group in fields if group})
    return patch.with_value({field: groups if group else patch for field, _, group in fields})
