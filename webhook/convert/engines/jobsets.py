"""Extract Runs from JobSets, and from TrainJobs with their runtimes, which are JobSets."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from webhook import names
from webhook.convert.engines.parts import begin, first_of, is_second, set_present, set_templates
from webhook.convert.polyaxon.draft import Converted, settled
from webhook.convert.polyaxon.item import NOTHING, Item, plain
from webhook.errors import UnreadableText
from webhook.foreign_text import parse_object
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.run.backends import jobset, trainer
from webhook.run.backends.backend import exit_code_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.convert.polyaxon.draft import Draft

# Names of a JobSet's jobs that webhook/sources/jobset.yaml reads as workers, too.
_CALLED_WORKERS: Final = ("workers", "node", "nodes")
# Characters of a framework's settings, as a Run writes them. The place of each is looked up.
_MOST_OF_SETTINGS: Final = 8192


def extract_jobset(item: Item, _: Item) -> Converted:
    """Return the Run of a JobSet, with the framework of its label."""
    made = begin(item, jobset.KIND)
    label = item.find("metadata", "labels", names.FRAMEWORK)
    framework = label.as_text if label.as_text in FRAMEWORKS else None
    if framework:
        made.spec["framework"] = label
        made.labels = {k: v for k, v in made.labels.items() if k != names.FRAMEWORK}
        _read_settings(made, framework)
    spec = item.find("spec")
    made.replicas = spec.find("replicatedJobs")
    restarts = spec.find("failurePolicy", "maxRestarts")
    if restarts.value is not None:
        made.spec |= {"restartScope": "Run", "backoffLimit": restarts}
    role_names = ROLES[framework].names
    used = [job for job in made.replicas.elements if _has_pods(job)]
    jobs = {name: job for job in used if (name := job.find("name").as_text) in role_names}
    # Those that are called like workers go before others.
    called = [job for job in used if job.find("name").as_text in _CALLED_WORKERS]
    for job in (*called, *(job for job in used if job not in called)):
        if job.find("name").as_text not in role_names:
            alone = len(used) == 1 or job in called
            role = _role(job, framework, jobs, alone=alone)
            jobs |= {role: job} if role else {}
    made.roles = jobs
    limits = [job.find("template", "spec", "backoffLimit") for job in jobs.values()]
    if restarts.value is None:
        same = _same([limit for limit in limits if limit.value] or limits)
        set_present(made.spec, backoffLimit=same)
    deadlines = [job.find("template", "spec", "activeDeadlineSeconds") for job in jobs.values()]
    if _same(deadlines).value:
        made.spec["activeDeadlineSeconds"] = deadlines[0]
    replicas = {role: _read_job(made, job) for role, job in jobs.items()}
    templates = {role: job.find("template", "spec", "template") for role, job in jobs.items()}
    marks = {names.FRAMEWORK: framework} if framework else {}
    set_templates(made, replicas, templates, dict.fromkeys(templates, marks))
    return made


def _same(items: Sequence[Item]) -> Item:
    """Return the first item if all have its value, else one without a value."""
    return items[0] if items and all(item.value == items[0].value for item in items) else NOTHING


def _read_settings(made: Converted, framework: str) -> None:
    """Move the framework's settings from the annotation to the spec, if it can be read."""
    annotation = made.annotations.get(names.SETTINGS)
    if isinstance(annotation, Item):
        with suppress(UnreadableText):
            made.spec[framework] = parse_object(annotation.as_text, _MOST_OF_SETTINGS)
            made.annotations = {k: v for k, v in made.annotations.items() if k != names.SETTINGS}


def _read_job(made: Converted, job: Item) -> dict[str, Draft]:
    replica: dict[str, Draft] = {}
    spec = job.find("template", "spec")
    replicas, completions = job.find("replicas"), spec.find("completions")
    jobs = 1 if replicas.value is None else replicas.value
    # Any other value is an error of the Run's count, at its place.
    if isinstance(jobs, int) and isinstance(completions.value, int) and completions.value > 1:
        replica["count"] = completions.with_text("").with_value(completions.value * jobs)
    else:
        set_present(replica, count=replicas)
    total = settled(made.spec.get("backoffLimit"))
    if spec.find("backoffLimit").value == 0 and total != 0 and "restartScope" not in made.spec:
        replica["restartPolicy"] = "Never"
    name = spec.find("template", "spec", "containers", 0, "name").as_text
    if plain(spec.find("podFailurePolicy")) == exit_code_policy(name):
        replica["restartPolicy"] = "ExitCode"
    return replica


def _role(job: Item, framework: Any, taken: Mapping[str, Item], *, alone: bool) -> str:
    """Return the role for a replicated job without the name of one; "" if there is none left.

    Master for one pod beside others, else worker.
    """
    free = [role for role in ROLES[framework].names if role not in taken]
    counts = (job.find("replicas"), job.find("template", "spec", "completions"))
    single = not alone and all(count.value in (None, 1) for count in counts)
    wanted = ("master", "worker") if single else ("worker",)
    return next((role for role in wanted if role in free), "")


def _has_pods(job: Item) -> bool:
    spec = job.find("template", "spec")
    counts = (job.find("replicas"), spec.find("parallelism"), spec.find("completions"))
    return all(count.value != 0 for count in counts)


def extract_train_job(item: Item, runtime: Item) -> Converted:
    """Return the Run of a TrainJob and its runtime; the job's values win over the runtime's."""
    made = begin(item, trainer.KIND)
    job_trainer, policy = item.find("spec", "trainer"), runtime.find("spec", "mlPolicy")
    jobset_spec = runtime.find("spec", "template", "spec")
    made.replicas = jobset_spec.find("replicatedJobs")
    made.roles = {"worker": trainer_job(runtime)}
    job = trainer_job(runtime).find("template", "spec")
    if policy.find("torch").value is not None:
        made.spec["framework"] = "pytorch"
        in_runtime = policy.find("torch", "numProcPerNode")
        processes = first_of(job_trainer.find("numProcPerNode"), in_runtime)
        # Rendering writes the default of the runtime into the job.
        if processes.value is not None and (processes.value != trainer.UNSET or in_runtime.value):
            made.spec["pytorch"] = {"nprocPerNode": processes}
    replica: dict[str, Draft] = {}
    set_present(replica, count=first_of(job_trainer.find("numNodes"), policy.find("numNodes")))
    restarts = jobset_spec.find("failurePolicy", "maxRestarts")
    if restarts.value is not None:
        made.spec |= {"restartScope": "Run", "backoffLimit": restarts}
    else:
        set_present(made.spec, backoffLimit=job.find("backoffLimit"))
    set_present(made.spec, activeDeadlineSeconds=job.find("activeDeadlineSeconds"))
    if plain(job.find("podFailurePolicy")) == exit_code_policy(trainer.CONTAINER):
        replica["restartPolicy"] = "ExitCode"
    template = job.find("template")
    if is_second(template, trainer.CONTAINER):
        made.spec["mainContainer"] = trainer.CONTAINER
    marks = {names.FRAMEWORK: "pytorch"} if "framework" in made.spec else {}
    set_templates(made, {"worker": replica}, {"worker": template}, {"worker": marks})
    _override_container(made, job_trainer)
    return made


def trainer_job(runtime: Item) -> Item:
    """Return the replicated job that trains; an item without a value if none or several may.

    Trainer knows it by its label. Without the label, it is the job called node, or the only one.
    """
    jobs = runtime.find("spec", "template", "spec", "replicatedJobs").elements
    step = ("template", "metadata", "labels", trainer.STEP)
    labelled = [job for job in jobs if job.find(*step).value == trainer.TRAINER]
    named = [job for job in jobs if job.find("name").value == trainer.CONTAINER]
    candidates = labelled or named or jobs
    return candidates[0] if len(candidates) == 1 else NOTHING


def _override_container(made: Converted, job_trainer: Item) -> None:
    values: dict[str, Item] = {}
    set_present(values, **{key: job_trainer.find(key) for key in ("image", "command", "args")})
    set_present(values, resources=job_trainer.find("resourcesPerNode"))
    env = job_trainer.find("env").elements
    names_of = {variable.find("name").as_text for variable in env}
    spec = cast("dict[str, Any]", made.spec["template"]).get("spec", {})
    containers = spec.get("containers")
    if not (values or env) or not isinstance(containers, Item):
        return

    def override(container: Item) -> Draft:
        if container.find("name").value != trainer.CONTAINER:
            return container
        old = container.find("env").elements
        kept = [variable for variable in old if variable.find("name").as_text not in names_of]
        return {**container.entries, **values, **({"env": [*kept, *env]} if env else {})}

    spec["containers"] = [override(container) for container in containers.elements]
