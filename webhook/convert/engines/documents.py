"""Select the object to convert, and the one that belongs to it, among the documents of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.engines.jobsets import trainer_job
from webhook.convert.engines.parts import find
from webhook.convert.polyaxon.convert import read_file
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import Origin
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.training_operator import KINDS, READ_ONLY
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.item import Item
    from webhook.run.backends.backend import ObjectKind
    from webhook.run.backends.training_operator import JobKind

JOBS: Final[Mapping[tuple[str, str], JobKind]] = {
    (each.api_version, each.kind): each for each in (*KINDS.values(), *READ_ONLY)
}
# All kinds that can be converted, by apiVersion and kind.
CONVERTIBLE: Final[Mapping[tuple[str, str], ObjectKind]] = {
    (each.api_version, each.kind): each
    for each in (
        *JOBS.values(),
        batch_job.KIND,
        jobset.KIND,
        dask_operator.KIND,
        trainer.KIND,
        kuberay.KIND,
        kuberay.JOB,
        spark_operator.KIND,
    )
}
_KINDS: Final = tuple(dict.fromkeys(kind for _, kind in CONVERTIBLE))
# A kind -> the kinds of an object that belongs to it, in another document.
_COMPANIONS: Final = {
    trainer.KIND.kind: (trainer.RUNTIME, f"Cluster{trainer.RUNTIME}"),
    kuberay.KIND.kind: (batch_job.KIND.kind,),
}
_LIST: Final = "List"
_ONE: Final = "it holds several objects; give one of them, as `kubectl get KIND NAME -o yaml` does"
# Kinds that are no single run: what to do instead.
_REFUSED: Final = {
    "RayCronJob": "it makes runs by a schedule; convert its jobTemplate as a RayJob",
    "ScheduledSparkApplication": "it makes runs by a schedule; convert its template as a "
    "SparkApplication",
    "CronJob": "it makes runs by a schedule; convert its jobTemplate as a Job",
    "DaskCluster": "it has no program; convert the DaskJob that uses it",
    "TrainingRuntime": "it is no run; give it beside a TrainJob",
    "ClusterTrainingRuntime": "it is no run; give it beside a TrainJob",
    **dict.fromkeys((_LIST, *(f"{kind}{_LIST}" for kind in _KINDS)), _ONE),
}
_API_VERSION: Final = "apiVersion"
# The field that only Polyaxonfiles have.
_POLYAXON: Final = "version"


def is_engine_object(files: Mapping[str, bytes]) -> bool:
    """Return True if a document of the files has an apiVersion, as no Polyaxonfile has.

    Also for a document that lacks it, and has one of the kinds.
    """
    notes = Notes()
    return any(
        _API_VERSION in item.entries
        or (_POLYAXON not in item.entries and find(item, "kind").value in (*_KINDS, *_REFUSED))
        for file, content in files.items()
        for item in read_file(file, content, notes)
    )


def kind_of(item: Item) -> tuple[str, str]:
    """Return apiVersion and kind."""
    return find(item, _API_VERSION).as_text, find(item, "kind").as_text


def select(
    items: list[Item], files: Mapping[str, bytes], notes: Notes
) -> tuple[Item, Item | None] | None:
    """Return the object and its companion; None, and an error, if there are not just these."""
    if not items:
        notes.error(Origin(next(iter(files)), (1, 1), (1, 1)), "it has no object")
        return None
    main = next((each for each in items if find(each, "kind").value in _COMPANIONS), items[0])
    others = [each for each in items if each is not main]
    kinds = _COMPANIONS.get(str(find(main, "kind").value), ())
    possible = [each for each in others if find(each, "kind").value in kinds]
    wanted = _runtime_title(main)
    companion = next(
        (each for each in possible if _title(each) == wanted), next(iter(possible), None)
    )
    for item in others:
        if item is not companion:
            notes.error(item, "is one document more; a Run is made of one object")
    _check_kind(main, notes)
    if find(main, "kind").value == trainer.KIND.kind:
        _check_runtime(main, companion, notes)
    return main, companion


def _title(item: Item) -> str:
    return f"{find(item, 'kind').as_text}/{find(item, 'metadata', 'name').as_text}"


def _runtime_title(job: Item) -> str:
    """Return kind and name of a TrainJob's runtime; its kind is that of all namespaces if unset."""
    reference = find(job, "spec", "runtimeRef")
    kind = find(reference, "kind").value
    return f"{kind or f'Cluster{trainer.RUNTIME}'}/{find(reference, 'name').as_text}"


def _check_runtime(job: Item, runtime: Item | None, notes: Notes) -> None:
    """Note an error unless the runtime is the one that the TrainJob names, and has one trainer."""
    at = find(job, "spec", "runtimeRef")
    at, wanted = (job if at.value is None else at), _runtime_title(job)
    if runtime is None:
        notes.error(at, f"its runtime {wanted} is not here; add it as a document of its own")
        return
    if (own := _title(runtime)) != wanted:
        what = f"is {wanted}, and the runtime here is {own}; add {wanted}, or name the other one"
        notes.error(at, what)
    mpi = find(runtime, "spec", "mlPolicy", "mpi")
    if mpi.value is not None:
        what = (
            "a TrainJob with MPI is a launcher and nodes, by images for Trainer's own SSH; write a "
            "Run of framework mpi, with the roles launcher and worker"
        )
        notes.error(mpi, what)
    jobs = find(runtime, "spec", "template", "spec", "replicatedJobs")
    if len(jobs.elements) > 1 and trainer_job(runtime).value is None:
        named = ", ".join(find(each, "name").as_text for each in jobs.elements)
        what = (
            f"one of {named} must have the label {trainer.STEP}: {trainer.TRAINER} in "
            "template.metadata, by which Trainer knows the job that trains; label it"
        )
        notes.error(jobs, what)


def _check_kind(item: Item, notes: Notes) -> None:
    """Note an error unless the kind is known in this version."""
    version, kind = find(item, _API_VERSION), find(item, "kind")
    if (version.value, kind.value) in CONVERTIBLE:
        return
    if kind.value is None:
        notes.error(item, f"is missing; want one of {', '.join(_KINDS)}", below=("kind",))
        return
    if cure := _REFUSED.get(str(kind.value)):
        notes.error(kind, f"is {kind.value}: {cure}")
        return
    if versions := " or ".join(known for known, each in CONVERTIBLE if each == kind.value):
        of = f"of {kind.value} want {versions}"
        if version.value is None:
            notes.error(item, f"is missing; {of}", below=(_API_VERSION,))
        else:
            notes.error(version, f"is {quoted(version.value)}; {of}")
        return
    hint = guess(str(kind.value), _KINDS)
    notes.error(kind, f"{quoted(kind.value)} is not one of {', '.join(_KINDS)}{hint}")
