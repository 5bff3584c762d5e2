"""The environment section of the old schema: what its pods mount, its replicas, their resources.

Sources: polyaxon-schemas 0.6 (`ops/environments/`, `ops/experiment/environment.py`,
`specs/experiment.py`, `specs/utils.py`: get_task_values) and polyaxon 0.x
(`scheduler/spawners/experiment_spawner.py`, `scheduler/spawners/templates/resources.py`).

- What the pods mount, and their account, is the same for all. Resources and placement at the top of
  environment are the master's alone.
- `default_worker` and `default_ps` are for all of a task, an entry of `worker` and `ps` for one
  index. Each of its fields replaces the default's whole; an empty one counts as left out. Older
  files spell single fields `worker_resources` and so on.
- cpu is in cores, memory in MiB, gpu is nvidia.com/gpu. Zero and null count as left out. The
  documentation of Polyaxon also writes `request` and `limit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import Section
from webhook.convert.polyaxon.placement import OLD, placement
from webhook.convert.polyaxon.values import want_list, want_number, want_text, want_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import Item

# Where other replicas are described: under their framework's name; since 0.4 under replicas; and
# with the master's resources when TensorFlow was the only framework.
FRAMEWORKS: Final = ("tensorflow", "mxnet", "pytorch", "horovod", "mpi")
_TWICE: Final = "a run has one set of replicas, and environment has one already; keep one"
_STORES: Final = (
    "Fairlead mounts no stores of data or outputs; give the pods a volume in spec.template of "
    "the Run"
)
_MEANINGLESS: Final = {
    "persistence": _STORES,
    "outputs": _STORES,
    "data_refs": _STORES,
    "artifact_refs": _STORES,
}
_REFERENCES: Final = (
    ("config_map_refs", "configMapRef", "ConfigMap"),
    ("configmap_refs", "configMapRef", "ConfigMap"),
    ("secret_refs", "secretRef", "Secret"),
)
_CATALOGUE: Final = (
    "names of Polyaxon's catalogue are taken for those of {kind}s in the run's namespace; mend "
    "spec.template of the Run if they differ"
)
WORKER: Final = "worker"
PS: Final = "ps"
_COUNTS: Final = {WORKER: "n_workers", PS: "n_ps"}
FIELDS: Final = tuple(
    field
    for task, count in _COUNTS.items()
    for field in (count, f"default_{task}", task, f"default_{task}_resources", f"{task}_resources")
)
_FOR_ALL: Final = "Polyaxon takes it from the top of environment alone, for all replicas"
_REPLICA_MEANINGLESS: Final = dict.fromkeys(
    (
        "service_account",
        "image_pull_secrets",
        "max_restarts",
        "secret_refs",
        "config_map_refs",
        "configmap_refs",
        "data_refs",
        "artifact_refs",
        "outputs",
        "persistence",
    ),
    _FOR_ALL,
)
_SESSION: Final = "a session's options are the program's own; set them there"
_ROLE_MEANINGLESS: Final = {
    "delay_workers_by_global_step": _SESSION,
    "run_config": _SESSION,
}
_TPU: Final = (
    "becomes google.com/tpu, as GKE calls it today; the program and the node pool have to be for it"
)
_GPU_LIMIT: Final = "Kubernetes wants a limit for devices; it is set to the request"
_GPU_DIFFERENT: Final = "request and limit of a device have to be equal; keep one of the two"


@dataclass
class Environment:
    """What an experiment, a job or a notebook asks for.

    resources, placement: of the only pod, or of the master.
    pod: fields of every pod's spec. env_from: of every main container.
    replicas: the section with the other replicas, and the framework that it is spelt under.
    """

    resources: dict[str, Draft] = field(default_factory=dict)
    placement: dict[str, Draft] = field(default_factory=dict)
    pod: dict[str, Draft] = field(default_factory=dict)
    env_from: list[Draft] = field(default_factory=list)
    max_restarts: Item | None = None
    replicas: Item | None = None
    spelt_under: str = "replicas"


def environment(item: Item | None, notes: Notes, *, distributable: bool) -> Environment:
    """The environment section. Only experiments are `distributable`."""
    if item is None:
        return Environment()
    section = Section(item, notes)
    result = Environment(resources(section.non_empty("resources"), notes), placement(section, OLD))
    section.ignore("index")
    section.leave(_MEANINGLESS)
    if account := section.non_empty("service_account"):
        result.pod["serviceAccountName"] = account
    if secrets := section.non_empty("image_pull_secrets"):
        result.pod["imagePullSecrets"] = [{"name": name} for name in _names(secrets, notes)]
    for name, source, kind in _REFERENCES:
        if references := section.non_empty(name):
            notes.warning(references, _CATALOGUE.format(kind=kind))
            result.env_from += [{source: {"name": name}} for name in _names(references, notes)]
    restarts = section.non_empty("max_restarts")
    if restarts is not None and want_whole(restarts, notes) is not None:
        result.max_restarts = restarts.holding(want_whole(restarts, notes))
    if distributable:
        _replicas(section, result)
    section.close()
    return result


def _replicas(section: Section, result: Environment) -> None:
    oldest = {name: item for name in FIELDS if (item := section.non_empty(name)) is not None}
    if oldest:
        result.replicas, result.spelt_under = section.item.holding(oldest), "tensorflow"
    for name in ("replicas", *FRAMEWORKS):
        found = section.non_empty(name)
        if found is not None and result.replicas is not None:
            section.notes.error(found, _TWICE, key=True)
        elif found is not None:
            result.replicas, result.spelt_under = found, name


def _names(item: Item, notes: Notes) -> list[Item]:
    return [
        element.saying(text)
        for element in want_list(item, notes)
        if (text := want_text(element, notes)) is not None
    ]


@dataclass
class Task:
    """The replicas of one task: how many, what all of them ask for, and what single ones do."""

    count: Item | None = None
    common: dict[str, Draft] = field(default_factory=dict)
    by_index: list[Draft] = field(default_factory=list)

    def replica(self) -> dict[str, Draft]:
        """As a Run has it."""
        return non_empty(count=self.count, **self.common, byIndex=self.by_index)


def tasks(item: Item, notes: Notes, *, with_ps: bool) -> dict[str, Task]:
    """The tasks that have replicas; only some frameworks have parameter servers."""
    section = Section(item, notes)
    section.leave(_ROLE_MEANINGLESS)
    names = (WORKER, PS) if with_ps else (WORKER,)
    found = {name: _task(section, name) for name in names}
    section.close()
    return {name: task for name, task in found.items() if task.count is not None}


def _task(section: Section, name: str) -> Task:
    notes = section.notes
    count = section.non_empty(_COUNTS[name])
    number = want_whole(count, notes) if count is not None else None
    result = Task(count.holding(number) if count is not None and number else None)
    common, older = (
        section.non_empty(f"default_{name}"),
        section.non_empty(f"default_{name}_resources"),
    )
    if common is not None:
        result.common = _one(Section(common, notes))
    if older is not None and (asked := resources(older, notes)):
        result.common.setdefault("resources", asked)
    for entries in (section.non_empty(name), section.non_empty(f"{name}_resources")):
        if entries is not None:
            bare = entries.origin.path[-1] != name
            result.by_index += _single(entries, notes, bare=bare)
    if result.count is None and count is None and (result.common or result.by_index):
        at = common or older or section.item
        notes.warning(at, f"it has no replicas: {_COUNTS[name]} is not given")
    return result


def _single(item: Item, notes: Notes, *, bare: bool) -> Iterator[Draft]:
    """Entries for one index each; `bare` ones have the resources beside the index."""
    for entry in want_list(item, notes):
        index = entry.entries.get("index")
        if index is None or index.value is None:
            notes.error(entry, "is required: which replica, from 0", below=("index",))
            continue
        number = want_whole(index, notes)
        rest = {key: value for key, value in entry.entries.items() if key != "index"}
        own = entry.holding(rest)
        if bare:
            differs = non_empty(resources=resources(own, notes))
        else:
            differs = _one(Section(own, notes), single=True)
        if number is not None and differs:
            yield {"index": index.holding(number), **differs}


def _one(section: Section, *, single: bool = False) -> dict[str, Draft]:
    """What one entry asks for; a single replica's replaces its task's, field by field."""
    section.ignore("index")
    section.leave({**_REPLICA_MEANINGLESS, "config": _SESSION})
    # Resources without any in them are a word, too: a single replica then asks for none.
    own = section.take("resources")
    asked: dict[str, Draft] = {"resources": resources(own, section.notes)} if own else {}
    where = placement(section, OLD)
    section.close()
    if not single:
        return non_empty(**asked, environment=where)
    strategy: dict[str, Draft] = {"patchStrategy": "Replace"} if where else {}
    return {**asked, **non_empty(environment={**strategy, **where})}


class Kind(NamedTuple):
    """What a resource is called in Kubernetes, and how its amount is written there."""

    name: str
    device: bool
    unit: str = ""


KINDS: Final[Mapping[str, Kind]] = {
    "cpu": Kind("cpu", device=False),
    "memory": Kind("memory", device=False, unit="Mi"),
    "gpu": Kind("nvidia.com/gpu", device=True),
    "tpu": Kind("google.com/tpu", device=True),
}


def resources(item: Item | None, notes: Notes) -> dict[str, Draft]:
    """What a container asks for: requests and limits, as far as there are any."""
    if item is None:
        return {}
    section = Section(item, notes)
    sides: dict[str, dict[str, Draft]] = {"requests": {}, "limits": {}}
    for name, kind in KINDS.items():
        if (given := section.non_empty(name)) is None:
            continue
        if name == "tpu":
            notes.warning(given, _TPU)
        for side, amount in _amounts(given, kind, notes).items():
            sides[side][kind.name] = amount
    section.close()
    return {side: amounts for side, amounts in sides.items() if amounts}


def _amounts(item: Item, kind: Kind, notes: Notes) -> dict[str, Item]:
    section = Section(item, notes)
    found: dict[str, Item] = {}
    want: Callable[[Item, Notes], float | None] = want_whole if kind.device else want_number
    for side, shorter in (("requests", "request"), ("limits", "limit")):
        given, other = section.non_empty(side), section.non_empty(shorter)
        if given is not None and other is not None:
            notes.error(other, f"is {side} once more; keep one of the two", key=True)
        given = given or other
        amount = None if given is None else want(given, notes)
        if given is not None and amount:
            found[side] = given.saying(_quantity(amount, kind.unit))
    section.close()
    if kind.device and found:
        _device(found, item, notes)
    return found


def _device(found: dict[str, Item], item: Item, notes: Notes) -> None:
    """Devices cannot be overcommitted: a request needs a limit, and the same one."""
    if "limits" not in found:
        found["limits"] = found["requests"]
        notes.warning(item, _GPU_LIMIT)
    elif "requests" in found and found["requests"].value != found["limits"].value:
        notes.error(found["requests"], _GPU_DIFFERENT)


def _quantity(amount: float, unit: str) -> str:
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    return f"{text}{unit}"
