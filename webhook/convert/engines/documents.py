"""Select the object to convert, and the one that belongs to it, among the documents of files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.engines.jobsets import extract_jobset, extract_train_job, trainer_job
from webhook.convert.engines.operator_jobs import extract_batch_job, extract_dask, extract_job
from webhook.convert.engines.ray import extract_ray, extract_ray_job
from webhook.convert.engines.spark import extract_spark
from webhook.convert.polyaxon.convert import read_file
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import Origin, noun
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.training_operator import KINDS, READ_ONLY, JobKind, render_job
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.convert.polyaxon.draft import Converted
    from webhook.convert.polyaxon.item import Item
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.run.backends.backend import Drafts, ObjectKind


class Convertible(NamedTuple):
    """One kind that can be converted.

    extract: the object and its companion, or NOTHING -> the draft of the Run
    render:  the same Run's objects, to compare them
    pods_at: where the pods are described
    companions: the kinds of an object that belongs to it, in another document
    """

    kind: ObjectKind
    extract: Callable[[Item, Item], Converted]
    render: Callable[[Drafts], Sequence[JsonObject]]
    pods_at: Path = ("spec",)
    companions: tuple[str, ...] = ()

    @property
    def job(self) -> JobKind | None:
        """The kind, if it has replicas by role as those of the training operator."""
        return self.kind if isinstance(self.kind, JobKind) else None


def _job(kind: JobKind) -> Convertible:
    return Convertible(
        kind,
        partial(extract_job, kind=kind),
        lambda drafts: [render_job(drafts, kind)],
        ("spec", kind.replicas),
    )


# By apiVersion and kind.
CONVERTIBLE: Final[Mapping[tuple[str, str], Convertible]] = {
    (each.kind.api_version, each.kind.kind): each
    for each in (
        *map(_job, (*KINDS.values(), *READ_ONLY)),
        Convertible(
            batch_job.KIND,
            extract_batch_job,
            lambda drafts: [batch_job.render_batch_job(drafts)],
            ("spec", "template"),
        ),
        Convertible(
            jobset.KIND, extract_jobset, jobset.JobSetBackend().render, ("spec", "replicatedJobs")
        ),
        Convertible(dask_operator.KIND, extract_dask, dask_operator.DaskBackend().render),
        Convertible(
            trainer.KIND,
            extract_train_job,
            trainer.TrainerBackend().render,
            ("spec", "template", "spec", "replicatedJobs"),
            (trainer.RUNTIME, f"Cluster{trainer.RUNTIME}"),
        ),
        Convertible(
            kuberay.KIND,
            extract_ray,
            kuberay.KubeRayBackend().render,
            companions=(batch_job.KIND.kind,),
        ),
        Convertible(
            kuberay.JOB,
            extract_ray_job,
            lambda drafts: [kuberay.render_ray_job(drafts)],
            ("spec", "rayClusterSpec"),
        ),
        Convertible(
            spark_operator.KIND,
            extract_spark,
            spark_operator.SparkBackend().render,
            ("spec", "driver"),
        ),
    )
}
_KINDS: Final = tuple(dict.fromkeys(kind for _, kind in CONVERTIBLE))
_COMPANIONS: Final = {
    kind: each.companions for (_, kind), each in CONVERTIBLE.items() if each.companions
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
        or (_POLYAXON not in item.entries and item.find("kind").value in (*_KINDS, *_REFUSED))
        for file, content in files.items()
        for item in read_file(file, content, notes)
    )


def kind_of(item: Item) -> tuple[str, str]:
    """Return apiVersion and kind; "" for one that is not text."""
    return item.find(_API_VERSION).as_text, item.find("kind").as_text


def select(
    items: list[Item], files: Mapping[str, bytes], notes: Notes
) -> tuple[Item, Item | None] | None:
    """Return the object and its companion; None, and an error, if there are not just these."""
    if not items:
        notes.error(Origin(next(iter(files)), (1, 1), (1, 1)), "it has no object")
        return None
    main = next((each for each in items if each.find("kind").as_text in _COMPANIONS), items[0])
    kind = main.find("kind").as_text
    others = [each for each in items if each is not main]
    possible = [each for each in others if each.find("kind").as_text in _COMPANIONS.get(kind, ())]
    wanted = _runtime_title(main)
    companion = next((each for each in possible if _title(each) == wanted), None)
    companion = companion or next(iter(possible), None)
    for item in others:
        if item is not companion:
            notes.error(item, "is one document more; a Run is made of one object")
    _check_kind(main, notes)
    if kind == trainer.KIND.kind:
        _check_runtime(main, companion, notes)
    return main, companion


def _title(item: Item) -> str:
    return f"{item.find('kind').as_text}/{item.find('metadata', 'name').as_text}"


def _runtime_title(job: Item) -> str:
    """Return kind and name of a TrainJob's runtime; its kind is that of all namespaces if unset."""
    reference = job.find("spec", "runtimeRef")
    kind = reference.find("kind").value
    return f"{kind or f'Cluster{trainer.RUNTIME}'}/{reference.find('name').as_text}"


def _check_runtime(job: Item, runtime: Item | None, notes: Notes) -> None:
    """Note an error unless the runtime is the one that the TrainJob names, and has one trainer."""
    at = job.find("spec", "runtimeRef")
    at, wanted = (job if at.value is None else at), _runtime_title(job)
    if runtime is None:
        notes.error(at, f"its runtime {wanted} is not here; add it as a document of its own")
        return
    if (own := _title(runtime)) != wanted:
        what = f"is {wanted}, and the runtime here is {own}; add {wanted}, or name the other one"
        notes.error(at, what)
    mpi = runtime.find("spec", "mlPolicy", "mpi")
    if mpi.value is not None:
        what = (
            "a TrainJob with MPI is a launcher and nodes, by images for Trainer's own SSH; write a "
            "Run of framework mpi, with the roles launcher and worker"
        )
        notes.error(mpi, what)
    jobs = runtime.find("spec", "template", "spec", "replicatedJobs")
    if len(jobs.elements) > 1 and trainer_job(runtime).value is None:
        named = ", ".join(each.find("name").as_text for each in jobs.elements)
        what = (
            f"one of {named} must have the label {trainer.STEP}: {trainer.TRAINER} in "
            "template.metadata, by which Trainer knows the job that trains; label it"
        )
        notes.error(jobs, what)


def _check_kind(item: Item, notes: Notes) -> None:
    """Note an error unless the kind is known in this version."""
    version, kind = item.find(_API_VERSION), item.find("kind")
    known = [each for each, name in CONVERTIBLE if name == kind.as_text]
    if version.as_text in known:
        return
    if kind.value is None:
        notes.error(item, f"is missing; want one of {', '.join(_KINDS)}", below=("kind",))
    elif cure := _REFUSED.get(kind.as_text):
        notes.error(kind, f"is {kind.as_text}: {cure}")
    elif known:
        of = f"of {kind.as_text} want {' or '.join(known)}"
        if version.value is None:
            notes.error(item, f"is missing; {of}", below=(_API_VERSION,))
        else:
            notes.error(version, f"is {noun(version)}; {of}")
    else:
        hint = guess(kind.as_text, _KINDS)
        notes.error(kind, f"{noun(kind)} is not one of {', '.join(_KINDS)}{hint}")
