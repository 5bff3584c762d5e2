"""Convert an engine's object to a Run, with a warning for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from webhook.convert.engines.difference import differences
from webhook.convert.engines.extract import (
    extract_batch_job,
    extract_dask,
    extract_job,
    extract_jobset,
    extract_ray,
    extract_ray_job,
    extract_spark,
    extract_train_job,
    find,
    trainer_job,
    without_env,
)
from webhook.convert.polyaxon.complete import complete
from webhook.convert.polyaxon.convert import Converted, read_file
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.backend import Drafts, field_key
from webhook.run.backends.dask_operator import DaskBackend
from webhook.run.backends.jobset import JobSetBackend
from webhook.run.backends.kuberay import KubeRayBackend
from webhook.run.backends.spark_operator import SparkBackend
from webhook.run.backends.trainer import TrainerBackend
from webhook.run.backends.training_operator import KINDS, READ_ONLY, render_job
from webhook.run.effective_settings import effective_settings
from webhook.run.native_default import format_value
from webhook.run.plan import drafts
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.convert.polyaxon.complete import Complete
    from webhook.convert.polyaxon.draft import Converted as Made
    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import ObjectKind
    from webhook.run.backends.training_operator import JobKind
    from webhook.run.model import Run

_Extract: TypeAlias = "Callable[[Item, Item | None], Made]"
_Render: TypeAlias = "Callable[[Drafts], Sequence[JsonObject]]"
_JOBS: Final[Mapping[tuple[str, str], JobKind]] = {
    (each.api_version, each.kind): each for each in (*KINDS.values(), *READ_ONLY)
}
# By kind: how to extract the Run of an object and its companion, and how to render it again.
_OTHERS: Final[Mapping[tuple[str, str], tuple[_Extract, _Render]]] = {
    (batch_job.KIND.api_version, batch_job.KIND.kind): (
        lambda item, _: extract_batch_job(item),
        lambda found: [batch_job.render_batch_job(found)],
    ),
    (jobset.KIND.api_version, jobset.KIND.kind): (
        lambda item, _: extract_jobset(item),
        JobSetBackend().render,
    ),
    (dask_operator.KIND.api_version, dask_operator.KIND.kind): (
        lambda item, _: extract_dask(item),
        DaskBackend().render,
    ),
    (trainer.KIND.api_version, trainer.KIND.kind): (
        lambda item, runtime: extract_train_job(item, runtime or item),
        TrainerBackend().render,
    ),
    (kuberay.KIND.api_version, kuberay.KIND.kind): (extract_ray, KubeRayBackend().render),
    (kuberay.JOB.api_version, kuberay.JOB.kind): (
        lambda item, _: extract_ray_job(item),
        lambda found: [kuberay.render_ray_job(found)],
    ),
    (spark_operator.KIND.api_version, spark_operator.KIND.kind): (
        lambda item, _: extract_spark(item),
        SparkBackend().render,
    ),
}
# A kind -> the kinds of an object that belongs to it, in another document.
_COMPANIONS: Final = {
    trainer.KIND.kind: (trainer.RUNTIME, f"Cluster{trainer.RUNTIME}"),
    kuberay.KIND.kind: (batch_job.KIND.kind,),
}
_KINDS: Final[Mapping[tuple[str, str], ObjectKind]] = {
    (each.api_version, each.kind): each
    for each in (
        *_JOBS.values(),
        batch_job.KIND,
        jobset.KIND,
        dask_operator.KIND,
        trainer.KIND,
        kuberay.KIND,
        kuberay.JOB,
        spark_operator.KIND,
    )
}
# Kinds that are no single run: what to do instead.
_REFUSED: Final = {
    "RayCronJob": "it makes runs by a schedule; convert its jobTemplate as a RayJob",
    "ScheduledSparkApplication": "it makes runs by a schedule; convert its template as a "
    "SparkApplication",
    "CronJob": "it makes runs by a schedule; convert its jobTemplate as a Job",
    "DaskCluster": "it has no program; convert the DaskJob that uses it",
    "TrainingRuntime": "it is no run; give it beside a TrainJob",
    "ClusterTrainingRuntime": "it is no run; give it beside a TrainJob",
}
# All kinds that can be converted, as (apiVersion, kind).
CONVERTIBLE: Final = (*_JOBS, *_OTHERS)
_API_VERSION: Final = "apiVersion"


def is_engine_object(files: Mapping[str, bytes]) -> bool:
    """Return True if a document of the files has an apiVersion, as no Polyaxonfile has."""
    notes = Notes()
    return any(
        _API_VERSION in item.entries
        for file, content in files.items()
        for item in read_file(file, content, notes)
    )


def convert_object(files: Mapping[str, bytes], name: str = "") -> Converted:
    """Return the Run of the one object in the files, and of its companion if its kind has one.

    `name` replaces the object's. Never raises, whatever is in the files.
    """
    notes = Notes()
    items = [item for file, text in files.items() for item in read_file(file, text, notes)]
    found = None if notes.errors else _select(items, files, notes)
    if found is None or notes.errors:
        return Converted(None, None, notes.in_order)
    done = _convert(*found, name, notes)
    if done is None:
        return Converted(None, None, notes.in_order)
    note = _compare_defaults(done.run, _key(found[0]))
    return Converted(done.document, done.run, notes.in_order, note)


def _key(item: Item) -> tuple[str, str]:
    return find(item, _API_VERSION).as_text, find(item, "kind").as_text


def _compare_defaults(run: Run, key: tuple[str, str]) -> str:
    """Return a note about unset fields that mean something else in a Run; "" if there are none."""
    fields = {each.run: each.unset for each in _KINDS[key].fields if each.unset}
    found: dict[str, None] = {}
    for each in effective_settings(run):
        path = tuple(each.path.removeprefix("spec.").split("."))
        unset = fields.get(field_key(path))
        value = format_value(each.value)
        if unset and unset != value and not each.written:
            found[f"{path[-1]} is {value} ({key[1]}: {unset})"] = None
    if not found:
        return ""
    return f"the file does not set these, and in a Run their defaults differ: {', '.join(found)}"


def _select(
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
    kinds = tuple(dict.fromkeys(each for _, each in CONVERTIBLE))
    versions = [known for known, each in CONVERTIBLE if each == kind.value]
    if versions:
        what = f"is {quoted(version.value)}; of {kind.value} want {' or '.join(versions)}"
        notes.error(version if version.value is not None else item, what)
        return
    if cure := _REFUSED.get(str(kind.value)):
        notes.error(kind, f"is {kind.value}: {cure}")
        return
    hint = guess(str(kind.value), kinds)
    at = kind if kind.value is not None else item
    notes.error(at, f"{quoted(kind.value)} is not one of {', '.join(kinds)}{hint}")


def _convert(item: Item, companion: Item | None, name: str, notes: Notes) -> Complete | None:
    key = _key(item)
    job = _JOBS.get(key)
    made = extract_job(item, job) if job is not None else _OTHERS[key][0](item, companion)
    if made.replicas is None or made.replicas.value is None:
        made.replicas = item
    done = complete(made, item, name, notes)
    if done is not None and key[1] == jobset.KIND.kind and done.run.spec.framework:
        found = _drafts(done.run)
        without_env(made, {role: jobset.own_env(found, role) for role in found.roles})
        done = complete(made, item, name, notes)
    if done is None:
        return None
    found = _drafts(done.run)
    rendered = [render_job(found, job)] if job is not None else [*_OTHERS[key][1](found)]
    old = find(item, "metadata", "name").as_text
    by_kind = {each["kind"]: each for each in rendered}
    main = by_kind.pop(key[1])
    _warn(item, main, old, name, notes)
    rest = next(iter(by_kind.values()), None)
    if companion is not None and rest is not None:
        _warn(companion, rest, old, name, notes)
    elif rest is not None:
        notes.warning(item, f"the Run is also a {rest['kind']} {rest['metadata']['name']}")
    return done


def _warn(item: Item, rendered: JsonObject, old: str, name: str, notes: Notes) -> None:
    """Note each difference; names that begin with the old one are those of the new one."""
    given = plain(item)
    metadata = given.get("metadata")
    if name and isinstance(metadata, dict) and str(metadata.get("name")).startswith(old):
        metadata["name"] = name + str(metadata["name"])[len(old) :]
    for path, message in differences(given, rendered):
        notes.warning(_at(item, path), message)


def _drafts(run: Run) -> Drafts:
    return Drafts(run, {each.role: each for each in drafts(run)[0] if each.index is None})


def _at(item: Item, path: tuple[str | int, ...]) -> Item:
    for step in path:
        item = item.elements[step] if isinstance(step, int) else item.entries[step]
    return item
