"""Convert an engine's object to a Run, with a warning for each difference.

The table has every kind that can be converted. The object, and the one that belongs to it, are
selected among the documents of files. Above 300 lines: the table and its one user.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.convert.engines.difference import differences
from webhook.convert.engines.extraction import (
    extract_batch_job,
    extract_dask,
    extract_job,
    extract_ray,
    extract_ray_job,
    extract_spark,
    operator_port,
)
from webhook.convert.engines.jobsets import extract_jobset, extract_train_job, trainer_job
from webhook.convert.engines.parts import without_env
from webhook.convert.polyaxon.complete import Converted, complete
from webhook.convert.polyaxon.convert import read_file
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import NOTHING, Origin, noun, plain
from webhook.frameworks.native_default import format_value
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.backend import Drafts, field_key, written_fields
from webhook.run.backends.training_operator import KINDS, MPIJOB_V1, READ_ONLY, JobKind, render_job
from webhook.run.effective_settings import effective_settings
from webhook.run.plan import drafts, make_gang
from webhook.strict import guess
from webhook.workloads.template import at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.convert.polyaxon.draft import Converted as Made
    from webhook.convert.polyaxon.item import Item
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.run.backends.backend import ObjectKind
    from webhook.run.model import Run


class Convertible(NamedTuple):
    """One kind that can be converted.

    extract: the object and its companion, or NOTHING -> the draft of the Run
    render:  the same Run's objects, to compare them
    pods_at: where the pods are described
    companions: the kinds of an object that belongs to it, in another document
    """

    kind: ObjectKind
    extract: Callable[[Item, Item], Made]
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
    (convertible.kind.api_version, convertible.kind.kind): convertible
    for convertible in (
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
            kuberay.render_ray_cluster,
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
    kind: convertible.companions
    for (_, kind), convertible in CONVERTIBLE.items()
    if convertible.companions
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


def is_engine_object(files: Mapping[str, bytes]) -> bool:
    """Return True if a document of the files has an apiVersion, as no Polyaxonfile has.

    Also for a document that lacks it, and the version of a Polyaxonfile, and has one of the kinds.
    """
    notes = Notes()
    return any(
        _API_VERSION in item.entries
        or ("version" not in item.entries and item.find("kind").value in (*_KINDS, *_REFUSED))
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
    main = next((item for item in items if item.find("kind").as_text in _COMPANIONS), items[0])
    kind = main.find("kind").as_text
    others = [item for item in items if item is not main]
    possible = [item for item in others if item.find("kind").as_text in _COMPANIONS.get(kind, ())]
    wanted = _runtime_title(main)
    companion = next((item for item in possible if _title(item) == wanted), None)
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
    if (title := _title(runtime)) != wanted:
        what = f"is {wanted}, and the runtime here is {title}; add {wanted}, or name the other one"
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
        named = ", ".join(element.find("name").as_text for element in jobs.elements)
        what = (
            f"one of {named} must have the label {trainer.STEP}: {trainer.TRAINER} in "
            "template.metadata, by which Trainer knows the job that trains; label it"
        )
        notes.error(jobs, what)


def _check_kind(item: Item, notes: Notes) -> None:
    version, kind = item.find(_API_VERSION), item.find("kind")
    versions = [api_version for api_version, name in CONVERTIBLE if name == kind.as_text]
    if version.as_text in versions:
        return
    if kind.value is None:
        notes.error(item, f"is missing; want one of {', '.join(_KINDS)}", below=("kind",))
    elif cure := _REFUSED.get(kind.as_text):
        notes.error(kind, f"is {kind.as_text}: {cure}")
    elif versions:
        wanted_versions = f"of {kind.as_text} want {' or '.join(versions)}"
        if version.value is None:
            notes.error(item, f"is missing; {wanted_versions}", below=(_API_VERSION,))
        else:
            notes.error(version, f"is {noun(version)}; {wanted_versions}")
    else:
        hint = guess(kind.as_text, _KINDS)
        notes.error(kind, f"{noun(kind)} is not one of {', '.join(_KINDS)}{hint}")


def convert_object(files: Mapping[str, bytes], name: str = "") -> Converted:
    """Return the Run of the one object in the files, and of its companion if its kind has one.

    `name` replaces the object's. Never raises, whatever is in the files.
    """
    notes = Notes()
    items = [item for file, text in files.items() for item in read_file(file, text, notes)]
    selection = None if notes.errors else select(items, files, notes)
    if selection is None or notes.errors:
        return Converted(findings=notes.in_order)
    done = _convert(*selection, name, notes)
    note = _compare_defaults(done.run, selection[0]) if done.run is not None else ""
    return done._replace(findings=notes.in_order, note=note)


def _compare_defaults(run: Run, item: Item) -> str:
    """Return a note about what the file leaves out, and a Run means otherwise; "" if nothing."""
    key = kind_of(item)
    fields = {field.run: field for field in CONVERTIBLE[key].kind.fields}
    spec_fields = frozenset(item.find("spec").present)
    different_defaults: dict[str, None] = {}
    for setting in effective_settings(run):
        path = tuple(setting.path.removeprefix("spec.").split("."))
        mapping = fields.get(field_key(path))
        unset = mapping.unset_in_object(setting.role, spec_fields) if mapping else ""
        value = format_value(setting.value)
        if mapping and unset and unset != value and not setting.written:
            what = f"{path[-1]} of {setting.role}" if mapping.absent and setting.role else path[-1]
            different_defaults[f"{what} is {value} ({key[1]}: {unset})"] = None
    written = {field_key(path) for path, _ in written_fields(run)}
    for name, mapping in fields.items():
        if mapping.native and name not in written:
            last = name.rpartition(".")[2]
            different_defaults[f"{last} is {mapping.native} ({key[1]}: {mapping.unset})"] = None
    texts = []
    if different_defaults:
        what = "the file does not set these, and in a Run their defaults differ: "
        texts.append(what + ", ".join(different_defaults))
    if key == (MPIJOB_V1.api_version, MPIJOB_V1.kind):
        texts.append(_compare_entry(run))
    return "; ".join(texts)


def _compare_entry(run: Run) -> str:
    text = (
        "the launcher of a Run enters the workers by SSH (MPIJob v1: kubectl exec), so the images "
        "need ssh and sshd"
    )
    worker = _drafts(run).roles.get("worker")
    if worker is None:
        return text
    if worker.container.get("command"):
        return f"{text}, and the command of the workers must start sshd: change or remove it"
    return f"{text}; workers without a command run sshd (MPIJob v1: sleep)"


def _convert(item: Item, companion: Item | None, name: str, notes: Notes) -> Converted:
    key = kind_of(item)
    engine = CONVERTIBLE[key]
    made = engine.extract(item, companion or NOTHING)
    if made.replicas is None or made.replicas.is_empty:
        what = f"is missing or empty; it describes the pods of a {key[1]}"
        notes.error(companion or item, what, below=engine.pods_at)
        return Converted()
    if key[1] == jobset.KIND.kind:
        # What rendering adds to the variables is known once there is a Run; it is no mistake.
        draft = complete(made, item, name, Notes()).run
        if draft is not None and draft.spec.framework:
            run_drafts = _drafts(draft)
            without_env(made, {role: jobset.own_env(run_drafts, role) for role in run_drafts.roles})
    done = complete(made, item, name, notes)
    if done.run is None:
        return done
    run_drafts = _drafts(done.run)
    rendered = [*engine.render(run_drafts)]
    old, name = item.find("metadata", "name").as_text, done.run.name
    for manifest in rendered:
        _put_in_place(manifest, made.roles)
    if engine.job is not None:
        _spell_as(plain(item), rendered[0], engine.job, done.run)
        _warn_ports(engine.job, made, done.run, notes)
    elif key[1] in (kuberay.KIND.kind, kuberay.JOB.kind):
        _spell_groups(item, rendered[0], made.roles)
    elif key[1] == dask_operator.KIND.kind:
        job_spec = item.find("spec", "job", "spec").present
        if job_spec and "restartPolicy" not in job_spec:
            dask_operator.leave_out_default(rendered[0])
    by_kind = {manifest["kind"]: manifest for manifest in rendered}
    main = by_kind.pop(key[1])
    _warn(item, main, old, name, notes)
    rest = next(iter(by_kind.values()), None)
    if companion is not None and rest is not None:
        _warn(companion, rest, old, name, notes)
    elif rest is not None:
        notes.warning(item, f"the Run is also a {rest['kind']} {rest['metadata']['name']}")
    return done


def _put_in_place(rendered: JsonObject, roles: Mapping[str, Item]) -> None:
    """Give the entries of lists the positions of the given ones from which their roles are."""
    lists: dict[Path, dict[str, int]] = {}
    for role, item in roles.items():
        *path, last = item.origin.path
        if isinstance(last, int):
            lists.setdefault(tuple(path), {})[role] = last
    for where, positions in lists.items():
        entries = at(rendered, where)
        if isinstance(entries, list):
            named = {entry.get("name", entry.get("groupName")): entry for entry in entries}
            placed: list[Any] = [None] * (max(positions.values()) + 1)
            for role, position in positions.items():
                placed[position] = named.get(role, entries[0])
            at(rendered, where[:-1])[where[-1]] = placed


def _spell_as(given: JsonObject, rendered: JsonObject, kind: JobKind, run: Run) -> None:
    """Write the rendered object as the given one is written, where both mean the same.

    The operators take keys of replicas in any case. An elastic PyTorchJob has an older place for
    the processes of a node. The older MPIJob has one for cleanPodPolicy, and a field for the main
    container, which is rendered as the first one.
    """
    given_spec, spec = given["spec"], rendered["spec"]
    keys = {str(key).lower(): key for key in given_spec[kind.replicas]}
    spec[kind.replicas] = {
        keys.get(key.lower(), key): replica_spec
        for key, replica_spec in spec[kind.replicas].items()
    }
    older = at(given_spec, ("elasticPolicy", "nProcPerNode"))
    if (
        older is not None
        and str(older) == spec.get("nprocPerNode")
        and not given_spec.get("nprocPerNode")
    ):
        del spec["nprocPerNode"]
        spec["elasticPolicy"]["nProcPerNode"] = older
    if kind is MPIJOB_V1:
        policy = spec.get("runPolicy", {})
        if given_spec.get("cleanPodPolicy") and not at(given_spec, ("runPolicy", "cleanPodPolicy")):
            spec["cleanPodPolicy"] = policy.pop("cleanPodPolicy", None)
        if given_spec.get("mainContainer"):
            containers = {draft.container["name"] for draft in _drafts(run).roles.values()}
            spec["mainContainer"] = containers.pop() if len(containers) == 1 else None


def _spell_groups(item: Item, rendered: JsonObject, roles: Mapping[str, Item]) -> None:
    """Write how Ray's groups start as the given object has it."""
    cluster = item.find("spec", "rayClusterSpec")
    head = (item.find("spec") if cluster is NOTHING else cluster).find("headGroupSpec")
    for group in (head, *roles.values()):
        rendered_group = at(rendered, group.origin.path)
        kuberay.spell_parameters(
            plain(group.find("rayStartParams")), rendered_group["rayStartParams"]
        )
        main = group.find("template", "spec", "containers", 0)
        kuberay.spell_command(plain(main), rendered_group["template"]["spec"]["containers"][0])


def _warn_ports(kind: JobKind, made: Made, run: Run, notes: Notes) -> None:
    """Note each port of a TFJob's role that a Run, which has one for all roles, does not use."""
    if kind.kind != "TFJob":
        return
    used = make_gang(run, [*_drafts(run).roles.values()], "").port
    for role, replica in made.roles.items():
        port = operator_port(replica.find("template"), kind)
        if port.value not in (None, used):
            what = f"is the port of {role}, and the replicas of a Run have one, {used}"
            notes.warning(port, f"{what}: set spec.{kind.framework}.port")


def _warn(item: Item, rendered: JsonObject, old: str, name: str, notes: Notes) -> None:
    """Note each difference; names that begin with the old one are those of the Run's."""
    given = plain(item)
    metadata = given.get("metadata")
    if old and isinstance(metadata, dict) and str(metadata.get("name")).startswith(old):
        metadata["name"] = name + str(metadata["name"])[len(old) :]
    for path, message in differences(given, rendered):
        notes.warning(item.find(*path), message)


def _drafts(run: Run) -> Drafts:
    return Drafts(run, {draft.role: draft for draft in drafts(run)[0] if draft.index is None})
