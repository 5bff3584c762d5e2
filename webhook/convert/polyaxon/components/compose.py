"""Combine an operation, its component and the shortcuts of both into one document.

Sources in polyaxon 2.18, and in the releases before it for runtimes that it dropped:
`_polyaxonfile/specs/polyaxonfile.py` (compose_polyaxonfile); `_flow/run/` (runtimes);
`_flow/polyaxonfile.py`, apply_shortcuts (ports choose a service where there is no runtime yet, the
others a job; cmd is one script and never merged); `_flow/run/patch.py`, validate_run_patch (a patch
that does not fit the runtime is one of each of its replicas); clipped 0.14 (`config/schema.py`:
patch_obj, patch_swagger_field, patch_normal_merge). Polyaxon patches its own objects, containers
and affinities field by field. Anything else is a value:

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

from webhook.convert.polyaxon.item import (
    Item,
    camel,
    plain,
    want_mapping,
    want_one_of,
    want_text,
    want_texts,
)
from webhook.convert.polyaxon.pods import POD
from webhook.frameworks.framework import PolyaxonRuntime
from webhook.frameworks.table import POLYAXON_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.convert.polyaxon.draft import Notes
    from webhook.convert.polyaxon.item import Item

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

# The container goes before its parts.
SHORTCUTS: Final = ("ports", *POD, "cmd", "env", "resources")
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
_REPLICAS: Final = frozenset(field for runtime in RUNTIMES.values() for field in runtime.fields)
# Fields of a replica that a distributed runtime does not have.
_OF_REPLICAS: Final = frozenset({*POD, "replicas"})


def patched(current: Item, patch: Item, strategy: str) -> Item:
    """Return an object with the patch applied; changes neither."""
    return _object(current, patch, strategy, _OBJECTS | _REPLICAS)


def _object(current: Item, patch: Item, strategy: str, objects: Collection[str]) -> Item:
    result = dict(current.entries)
    for key, value in patch.entries.items():
        result[key] = _field(key, result.get(key), value, strategy, objects)
    return current.with_value(result)


def _field(
    key: str, current: Item | None, patch: Item, strategy: str, objects: Collection[str]
) -> Item:
    if current is None or current.value is None:
        return patch
    if key in objects and isinstance(current.value, dict) and isinstance(patch.value, dict):
        if key != "workers":
            # In a container these are values, though a replica has objects of the same names.
            return _object(current, patch, strategy, () if key == "container" else objects)
        # Ray's replicas, by group: the patch changes existing groups, and adds none.
        groups = {
            name: _object(group, patch.find(name), strategy, objects)
            for name, group in current.entries.items()
        }
        return current.with_value(groups)
    if strategy == "isnull":
        return current
    if strategy == "replace" or patch.value is None:
        return current if patch.value is None and strategy == "pre_merge" else patch
    first, then = (current, patch) if strategy == "post_merge" else (patch, current)
    if isinstance(current.value, tuple) and isinstance(patch.value, tuple):
        values = [plain(element) for element in first.elements]
        new = (element for element in then.elements if plain(element) not in values)
        return current.with_value((*first.elements, *new))
    merged = _merged(first, then)
    return then if merged is then else current.with_value(merged.entries)


def _merged(base: Item, over: Item) -> Item:
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    result = dict(base.value)
    for key, value in over.value.items():
        result[key] = _merged(result[key], value) if key in result else value
    return over.with_value(result)


def applied(run: Item | None, document: Item, strategy: str, notes: Notes) -> Item | None:
    """Return the runtime with the document's shortcuts applied; None if there is no runtime."""
    named = [document.entries[name] for name in SHORTCUTS if name in document.entries]
    if run is None and named:
        kind = SERVICE if "ports" in document.entries else JOB
        run = named[0].with_value({"kind": named[0].with_text(kind)})
    for name in SHORTCUTS:
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
    return item.with_value({side: amounts for side, amounts in sides.items() if amounts.entries})


def _where_silent(patch: Item, run: Item) -> Item:
    """Return the patch of a command for containers without a command of their own."""
    container = run.entries.get("container")
    if container is not None and any(
        container.entries.get(name) is not None for name in ("command", "args")
    ):
        return patch.with_value(
            {k: child for k, child in patch.entries.items() if k != "container"}
        )
    below = {
        key: _where_silent(child, run.entries[key])
        for key, child in patch.entries.items()
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
    replicas = {name: item for name, item in fields.items() if item.value is not None}
    for name, group in run.find(runtime.groups).entries.items():
        replicas[f"{runtime.groups}/{name}"] = group
    return replicas


def spread(run: Item, patch: Item) -> Item:
    """Convert the patch to a patch of the runtime."""
    replicas = replicas_of(run)
    if not replicas or not patch.entries or not set(patch.entries) <= _OF_REPLICAS:
        return patch
    fields = [name.partition("/") for name in replicas]
    groups = patch.with_value({group: patch for _, _, group in fields if group})
    return patch.with_value({field: groups if group else patch for field, _, group in fields})


# Fields of an operation that refer to its component.
_REFERENCES: Final = ("hubRef", "pathRef", "urlRef", "dagRef")
# Fields that are not patched, or are patched separately.
_APART: Final = frozenset(
    {
        "version",
        "kind",
        "component",
        "patchStrategy",
        "isPreset",
        "run",
        "runPatch",
        "template",
        *_REFERENCES,
        *SHORTCUTS,
    }
)
_ELSEWHERE: Final = "only Polyaxon can resolve it; also give the component's file: --component FILE"
_NO_COMPONENT: Final = (
    "is required: what the operation runs; give the component's file too: --component FILE"
)


def composed(operation: Item | None, component: Item | None, notes: Notes) -> Item | None:
    """Return the composed document, which has a `run`; None after an error.

    `component` is from another file; the operation's own takes precedence.
    """
    if operation is None:
        return None if component is None else _layer(None, component, notes)
    operation = camel(operation)
    inline_component = operation.find("component")
    if inline_component.value is not None:
        want_mapping(inline_component, notes)
        component = inline_component
    if component is not None:
        base = _layer(None, component, notes)
        return None if base is None else _layer(base, operation, notes)
    for reference in map(operation.find, _REFERENCES):
        if reference.value is not None:
            notes.error(reference, _ELSEWHERE, key=True)
            return None
    notes.error(operation, _NO_COMPONENT, below=("component",))
    return None


def _layer(base: Item | None, document: Item, notes: Notes) -> Item | None:
    document = camel(document)
    named = document.find("patchStrategy")
    strategy_item = None if named.value is None else want_one_of(named, notes, STRATEGIES)
    strategy = DEFAULT if strategy_item is None else strategy_item.as_text
    fields = {name: item for name, item in document.entries.items() if name not in _APART}
    whole, run = document.with_value(fields), None
    if base is not None:
        whole, run = patched(base, whole, strategy), base.entries.get("run")
    document_run = document.find("run")
    if document_run.value is not None:
        want_mapping(document_run, notes)
        run = camel(document_run) if run is None else _over(run, camel(document_run), strategy)
    run = applied(run, document, strategy, notes)
    if run is None:
        notes.error(base or document, "is required: the runtime", below=("run",))
        return None
    patch = document.find("runPatch")
    if want_mapping(patch, notes):
        run = patched(run, spread(run, camel(patch)), strategy)
    return whole.with_value({**whole.entries, "run": run})


def _over(run: Item, patch: Item, strategy: str) -> Item:
    """Apply a runtime to another; one of a different kind replaces it, or is ignored."""
    first, second = run.entries.get("kind"), patch.entries.get("kind")
    if first is not None and second is not None and first.as_text != second.as_text:
        return patch if strategy in ("post_merge", "replace") else run
    return patched(run, spread(run, patch), strategy)
