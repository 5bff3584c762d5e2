"""What only one framework's runtime knows, as the framework's own part of a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.draft import given
from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_whole

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes
    from webhook.run.rendezvous.framework import PolyaxonRuntime

_MOST: Final = "the most replicas are those of all roles together"
_RENDEZVOUS: Final = "replicas meet by c10d at the master; Fairlead tells them where"
_LEFT_OUT: Final = {
    "max_replicas": _MOST,
    "rdvz_backend": _RENDEZVOUS,
    "rdvz_port": _RENDEZVOUS,
    "rdvz_host": _RENDEZVOUS,
    "rdvz_id": _RENDEZVOUS,
    "rdvz_conf": _RENDEZVOUS,
    "standalone": _RENDEZVOUS,
    "metrics": "Fairlead does not scale a run",
    "Metrics": "Fairlead does not scale a run",
}
# torchrun says words as well as numbers here.
_WORDS: Final = ("auto", "gpu", "cpu")


def options(section: Section, runtime: PolyaxonRuntime) -> dict[str, Draft]:
    """Fields of the Run's `pytorch` or `mpi`; other frameworks' runtimes have none."""
    if runtime.framework == "mpi":
        return given(slotsPerWorker=_whole(section.given("slots_per_worker"), section.notes, 1))
    if runtime.framework != "pytorch":
        return {}
    processes = section.given("n_proc_per_node")
    policy = section.given("elastic_policy")
    elastic: dict[str, Draft] = {}
    if policy is not None:
        own = Section(policy, section.notes, camel=True)
        elastic = given(
            minReplicas=_whole(own.given("min_replicas"), section.notes, 1) or policy.holding(1),
            maxRestarts=_whole(own.given("max_restarts"), section.notes, 0),
        )
        processes = processes or own.given("n_proc_per_node")
        own.leave(_LEFT_OUT)
        own.close()
    return given(nprocPerNode=_processes(processes, section.notes), elastic=elastic)


def _processes(item: Item | None, notes: Notes) -> Item | None:
    if item is not None and item.written in _WORDS:
        return item.saying(item.written)
    return _whole(item, notes, 1)


def _whole(item: Item | None, notes: Notes, least: int) -> Item | None:
    number = None if item is None else want_whole(item, notes, least=least)
    return None if item is None or number is None else item.holding(number)
