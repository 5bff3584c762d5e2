"""The environment section of the old schema: mounts of pods, replicas, resources.

Sources: polyaxon-schemas 0.6 (`ops/environments/`, `ops/experiment/environment.py`,
`specs/experiment.py`, `specs/utils.py`: get_task_values) and polyaxon 0.x
(`scheduler/spawners/experiment_spawner.py`, `scheduler/spawners/templates/resources.py`).

- Mounts and the service account are the same for all pods. Resources and placement at the top of
  environment apply to the master only.
- `default_worker` and `default_ps` are for all of a task, an entry of `worker` and `ps` for one
  index. Each of its fields replaces the default's whole; an empty one counts as left out. Older
  files spell single fields `worker_resources` and so on.
- cpu is in cores, memory in MiB, gpu is nvidia.com/gpu. Zero and null count as left out. The
  documentation of Polyaxon also writes `request` and `limit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import (
    NOTHING,
    even_empty,
    given,
    ignored,
    read,
    want_list,
    want_number,
    want_text,
    want_whole,
)
from webhook.convert.polyaxon.pods import OLD, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader, Item

# Places of the other replicas: under their framework's name; under `replicas` since 0.4; next to
# the master's resources when TensorFlow was the only framework.
_PLACES: Final = ("replicas", "tensorflow", "mxnet", "pytorch", "horovod", "mpi")
_TWICE: Final = "a run has one set of replicas, and environment has one already; keep one"
_STORES: Final = (
    "Fairlead mounts no stores of data or outputs; give the pods a volume in spec.template of "
    "the Run"
)
_CATALOGUE: Final = (
    "names of Polyaxon's catalogue are taken for those of {kind}s in the run's namespace; mend "
    "spec.template of the Run if they differ"
)
WORKER: Final = "worker"
PS: Final = "ps"
_FOR_ALL: Final = "Polyaxon takes it from the top of environment alone, for all replicas"
_SESSION: Final = "a session's options are the program's own; set them there"
_TPU: Final = (
    "becomes google.com/tpu, as GKE calls it today; the program and the node pool have to be for it"
)
_GPU_DIFFERENT: Final = "request and limit of a device have to be equal; keep one of the two"


@dataclass
class Environment:
    """The environment of an experiment, a job or a notebook.

    resources, placement: of the only pod, or of the master
    pod:                  fields of every pod's spec
    env_from:             of every main container
    replicas:             the section with the other replicas, and the framework that it names
    """

    resources: dict[str, Draft]
    placement: dict[str, Draft]
    pod: dict[str, Draft]
    env_from: list[Draft]
    max_restarts: Item | None
    replicas: Item | None = None
    spelt_under: str = "replicas"


def environment(item: Item, notes: Notes, *, distributable: bool) -> Environment:
    """Read the environment section. Only experiments are `distributable`."""
    fields = read(item, notes, _OF_EXPERIMENTS if distributable else _ENVIRONMENT, camel=False)
    result = Environment(
        fields.get("resources", {}),
        pick(fields, OLD),
        pick(fields, ("image_pull_secrets",)),
        [reference for name in pick(fields, _REFERENCES) for reference in fields[name]],
        fields.get("maxRestarts"),
    )
    if "serviceAccount" in fields:
        result.pod = {"serviceAccountName": fields["serviceAccount"], **result.pod}
    if oldest := pick(fields, _OLDEST):
        result.replicas, result.spelt_under = item.with_value(oldest), "tensorflow"
    for name, replicas in pick(fields, _PLACES).items():
        if result.replicas is not None:
            notes.error(replicas, _TWICE, key=True)
        else:
            result.replicas, result.spelt_under = replicas, name
    return result


def _names(item: Item, notes: Notes) -> list[Item]:
    return [
        element.with_text(text)
        for element in want_list(item, notes)
        if (text := want_text(element, notes)) is not None
    ]


def tasks(item: Item, notes: Notes, *, with_ps: bool) -> dict[str, dict[str, Draft]]:
    """Return the tasks with replicas, in the form of a Run; some frameworks have no ps."""
    names = (WORKER, PS) if with_ps else (WORKER,)
    table = {**_OF_TASKS, **{field: given for name in names for field in _FIELDS[name]}}
    fields = read(item, notes, table, camel=False)
    task_by_name = {name: _task(name, item, fields, notes) for name in names}
    return {name: task for name, task in task_by_name.items() if task}


def _task(name: str, item: Item, fields: Mapping[str, Item], notes: Notes) -> dict[str, Draft]:
    items = [fields.get(to_camel(field), NOTHING) for field in _FIELDS[name]]
    count, common, older, entries, bare = items
    number = want_whole(count, notes) if count is not NOTHING else None
    settings = _read_replica(common, notes)
    if asked := resources(older, notes):
        settings.setdefault("resources", asked)
    by_index = [
        *_single(entries, notes, partial(_read_replica, single=True)),
        *_single(bare, notes, lambda *arguments: non_empty(resources=resources(*arguments))),
    ]
    if count is NOTHING and (settings or by_index):
        where = next((candidate for candidate in (common, older) if candidate is not NOTHING), item)
        notes.warning(where, f"it has no replicas: {_FIELDS[name][0]} is not given")
    has_some = number is not None and number.value
    return non_empty(count=number, **settings, byIndex=by_index) if has_some else {}


def _single(
    item: Item, notes: Notes, reader: Callable[[Item, Notes], Mapping[str, Draft]]
) -> Iterator[Draft]:
    """Read entries for one index each, without which it is what `reader` takes."""
    for entry in want_list(item, notes):
        index = entry.find("index")
        if index.value is None:
            notes.error(entry, "is required: which replica, from 0", below=("index",))
            continue
        number = want_whole(index, notes)
        rest = {key: value for key, value in entry.entries.items() if key != "index"}
        differs = reader(entry.with_value(rest), notes)
        if number is not None and differs:
            yield {"index": number, **differs}


def _read_replica(item: Item, notes: Notes, *, single: bool = False) -> dict[str, Draft]:
    """Read one entry; a single replica's fields replace those of its task."""
    fields = read(item, notes, _REPLICA, camel=False)
    # Empty resources count, too: a single replica then requests none.
    resources_item = fields.get("resources")
    asked: dict[str, Draft] = (
        {"resources": resources(resources_item, notes)} if resources_item else {}
    )
    where = pick(fields, OLD)
    if not single:
        return non_empty(**asked, environment=where)
    strategy: dict[str, Draft] = {"patchStrategy": "Replace"} if where else {}
    return {**asked, **non_empty(environment={**strategy, **where})}


# Their names in Kubernetes, and the units of their amounts. Devices have whole numbers.
_RESOURCES: Final = {
    "cpu": ("cpu", ""),
    "memory": ("memory", "Mi"),
    "gpu": ("nvidia.com/gpu", ""),
    "tpu": ("google.com/tpu", ""),
}
_DEVICES: Final = ("gpu", "tpu")
_SIDES: Final = {"requests": "request", "limits": "limit"}


def resources(item: Item, notes: Notes) -> dict[str, Draft]:
    sides: dict[str, dict[str, Item]] = {side: {} for side in _SIDES}
    for kind, kind_item in read(item, notes, dict.fromkeys(_RESOURCES, given), camel=False).items():
        name, unit = _RESOURCES[kind]
        if kind == "tpu":
            notes.warning(kind_item, _TPU)
        want = want_whole if kind in _DEVICES else want_number
        spellings = [spelling for pair in _SIDES.items() for spelling in pair]
        amounts = read(kind_item, notes, dict.fromkeys(spellings, want), camel=False)
        for side, shorter in _SIDES.items():
            if side in amounts and shorter in amounts:
                notes.error(amounts[shorter], f"is {side} once more; keep one of the two", key=True)
            amount = amounts.get(side, amounts.get(shorter, NOTHING))
            if amount.value:
                text = f"{amount.value:.6f}".rstrip("0").rstrip(".")
                sides[side][name] = amount.with_text(f"{text}{unit}")
        asked, limit = (side_amounts.get(name) for side_amounts in sides.values())
        if kind not in _DEVICES or asked is None:
            continue
        # Devices cannot be overcommitted: a request needs a limit, and the same one.
        if limit is None:
            sides["limits"][name] = asked
            notes.warning(
                kind_item, "Kubernetes wants a limit for devices; it is set to the request"
            )
        elif asked.value != limit.value:
            notes.error(asked, _GPU_DIFFERENT)
    return {side: amounts for side, amounts in sides.items() if amounts}


def _read_references(item: Item, notes: Notes, *, source: str, kind: str) -> list[Draft]:
    notes.warning(item, _CATALOGUE.format(kind=kind))
    return [{source: {"name": name}} for name in _names(item, notes)]


_config_maps = partial(_read_references, source="configMapRef", kind="ConfigMap")
# By task: its number of replicas, the settings of all of them, and those of single ones. Older
# files have the resources apart.
_FIELDS: Final = {
    name: (count, f"default_{name}", f"default_{name}_resources", name, f"{name}_resources")
    for name, count in ((WORKER, "n_workers"), (PS, "n_ps"))
}
_REFERENCES: Final[Mapping[str, FieldReader]] = {
    "config_map_refs": _config_maps,
    "configmap_refs": _config_maps,
    "secret_refs": partial(_read_references, source="secretRef", kind="Secret"),
}
_ENVIRONMENT: Final[Mapping[str, FieldReader]] = {
    "resources": resources,
    **OLD,
    "index": ignored,
    **dict.fromkeys(("persistence", "outputs", "data_refs", "artifact_refs"), _STORES),
    "service_account": given,
    "image_pull_secrets": lambda item, notes: [{"name": secret} for secret in _names(item, notes)],
    **_REFERENCES,
    "max_restarts": want_whole,
}
_OLDEST: Final = tuple(field for fields in _FIELDS.values() for field in fields)
_OF_EXPERIMENTS: Final = {**_ENVIRONMENT, **dict.fromkeys((*_OLDEST, *_PLACES), given)}
_OF_TASKS: Final[Mapping[str, FieldReader]] = {
    "delay_workers_by_global_step": _SESSION,
    "run_config": _SESSION,
}
_REPLICA: Final[Mapping[str, FieldReader]] = {
    **{name: _FOR_ALL for name in _ENVIRONMENT if name not in OLD},
    "index": ignored,
    "config": _SESSION,
    "resources": even_empty,
    **OLD,
}
