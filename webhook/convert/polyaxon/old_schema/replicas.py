"""The other replicas of a distributed experiment in the old schema: workers, parameter servers.

Read in polyaxon-schemas 0.6 (`ops/experiment/environment.py`, `specs/utils.py`: get_task_values).
`default_worker` and `default_ps` are for all of a task, and an entry of `worker` and `ps` for one
index: each of its fields replaces the default's whole, and what is empty counts as left out. The
master's environment is nobody else's. Older files spell single fields `worker_resources` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.draft import given
from webhook.convert.polyaxon.old_schema.resources import resources
from webhook.convert.polyaxon.placement import OLD, placement
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.values import want_list, want_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

WORKER: Final = "worker"
PS: Final = "ps"
_COUNTS: Final = {WORKER: "n_workers", PS: "n_ps"}
FIELDS: Final = tuple(
    field
    for task, count in _COUNTS.items()
    for field in (count, f"default_{task}", task, f"default_{task}_resources", f"{task}_resources")
)
_FOR_ALL: Final = "Polyaxon takes it from the top of environment alone, for all replicas"
_MEANINGLESS: Final = dict.fromkeys(
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


@dataclass
class Task:
    """The replicas of one task: how many, what all of them ask for, and what single ones do."""

    count: Item | None = None
    common: dict[str, Draft] = field(default_factory=dict)
    by_index: list[Draft] = field(default_factory=list)

    def replica(self) -> dict[str, Draft]:
        """As a Run has it."""
        return given(count=self.count, **self.common, byIndex=self.by_index)


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
    count = section.given(_COUNTS[name])
    number = want_whole(count, notes) if count is not None else None
    result = Task(count.holding(number) if count is not None and number else None)
    common, older = section.given(f"default_{name}"), section.given(f"default_{name}_resources")
    if common is not None:
        result.common = _one(Section(common, notes))
    if older is not None and (asked := resources(older, notes)):
        result.common.setdefault("resources", asked)
    for entries in (section.given(name), section.given(f"{name}_resources")):
        if entries is not None:
            bare = entries.origin.path[-1] != name
            result.by_index += _single(entries, notes, bare=bare)
    if result.count is None and count is None and (result.common or result.by_index):
        at = common or older or section.item
        notes.warning(at, f"there is none of them: {_COUNTS[name]} is not given")
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
            differs = given(resources=resources(own, notes))
        else:
            differs = _one(Section(own, notes), single=True)
        if number is not None and differs:
            yield {"index": index.holding(number), **differs}


def _one(section: Section, *, single: bool = False) -> dict[str, Draft]:
    """What one entry asks for; a single replica's replaces its task's, field by field."""
    section.ignore("index")
    section.leave({**_MEANINGLESS, "config": _SESSION})
    # Resources without any in them are a word, too: a single replica then asks for none.
    own = section.take("resources")
    asked: dict[str, Draft] = {"resources": resources(own, section.notes)} if own else {}
    where = placement(section, OLD)
    section.close()
    if not single:
        return given(**asked, environment=where)
    strategy: dict[str, Draft] = {"patchStrategy": "Replace"} if where else {}
    return {**asked, **given(environment={**strategy, **where})}
