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
    known = ROLES[framework].known
    used = [each for each in made.replicas.elements if _has_pods(each)]
    jobs = {name: each for each in used if (name := each.find("name").as_text) in known}
    # Those that are called like workers go before others.
    called = [each for each in used if each.find("name").as_text in _CALLED_WORKERS]
    for each in (*called, *(each for each in used if each not in called)):
        if each.find("name").as_text not in known:
            alone = len(used) == 1 or each in called
            role = _role(each, framework, jobs, alone=alone)
            jobs |= {role: each} if role else {}
    made.roles = jobs
    limits = [each.find("template", "spec", "backoffLimit") for each in jobs.values()]
    if restarts.value is None:
        same = _same([each for each in limits if each.value] or limits)
        set_present(made.spec, backoffLimit=same)
    deadlines = [each.find("template", "spec", "activeDeadlineSeconds") for each in jobs.values()]
    if _same(deadlines).value:
        made.spec["activeDeadlineSeconds"] = deadlines[0]
    found = {role: _read_job(made, each) for role, each in jobs.items()}
    templates = {role: each.find("template", "spec", "template") for role, each in jobs.items()}
    marks = {names.FRAMEWORK: framework} if framework else {}
    set_templates(made, found, templates, dict.fromkeys(templates, marks))
    return made


def _same(found: Sequence[Item]) -> Item:
    """Return the first item if all have its value, else one without a value."""
    return found[0] if found and all(each.value == found[0].value for each in found) else NOTHING


def _read_settings(made: Converted, framework: str) -> None:
    """Move the framework's settings from the annotation to the spec, if it can be read."""
    annotation = made.annotations.get(names.SETTINGS)
    if isinstance(annotation, Item):
        with suppress(UnreadableText):
            made.spec[framework] = parse_object(annotation.as_text, _MOST_OF_SETTINGS)
            made.annotations = {k: v for k, v in made.annotations.items() if k != names.SETTINGS}


def _read_job(made: Converted, job: Item) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    spec = job.find("template", "spec")
    replicas, completions = job.find("replicas"), spec.find("completions")
    jobs = 1 if replicas.value is None else replicas.value
    # Any other value is an error of the Run's count, at its place.
    if isinstance(jobs, int) and isinstance(completions.value, int) and completions.value > 1:
        found["count"] = completions.with_text("").with_value(completions.value * jobs)
    else:
        set_present(found, count=replicas)
    total = settled(made.spec.get("backoffLimit"))
    if spec.find("backoffLimit").value == 0 and total != 0 and "restartScope" not in made.spec:
        found["restartPolicy"] = "Never"
    name = spec.find("template", "spec", "containers", 0, "name").as_text
    if plain(spec.find("podFailurePolicy")) == exit_code_policy(name):
        found["restartPolicy"] = "ExitCode"
    return found


def _role(job: Item, framework: Any, taken: Mapping[str, Item], *, alone: bool) -> str:
    """Return the role for a replicated job without the name of one; "" if there is none left.

    Master for one pod beside others, else worker.
    """
    free = [role for role in ROLES[framework].known if role not in taken]
    counts = (job.find("replicas"), job.find("template", "spec", "completions"))
    single = not alone and all(each.value in (None, 1) for each in counts)
    wanted = ("master", "worker") if single else ("worker",)
    return next((role for role in wanted if role in free), "")


def _has_pods(job: Item) -> bool:
    spec = job.find("template", "spec")
    counts = (job.find("replicas"), spec.find("parallelism"), spec.find("completions"))
    return all(each.value != 0 for each in counts)


def extract_train_job(item: Item, runtime: Item) -> Converted:
    """Return the Run of a TrainJob and its runtime; the job's values win over the runtime's."""
    made = begin(item, trainer.KIND)
    own, policy = item.find("spec", "trainer"), runtime.find("spec", "mlPolicy")
    jobset_spec = runtime.find("spec", "template", "spec")
    made.replicas = jobset_spec.find("replicatedJobs")
    made.roles = {"worker": trainer_job(runtime)}
    job = trainer_job(runtime).find("template", "spec")
    if policy.find("torch").value is not None:
        made.spec["framework"] = "pytorch"
        in_runtime = policy.find("torch", "numProcPerNode")
        processes = first_of(own.find("numProcPerNode"), in_runtime)
        # Rendering writes the default of the runtime into the job.
        if processes.value is not None and (processes.value != trainer.UNSET or in_runtime.value):
            made.spec["pytorch"] = {"nprocPerNode": processes}
    found: dict[str, Draft] = {}
    set_present(found, count=first_of(own.find("numNodes"), policy.find("numNodes")))
    restarts = jobset_spec.find("failurePolicy", "maxRestarts")
    if restarts.value is not None:
        made.spec |= {"restartScope": "Run", "backoffLimit": restarts}
    else:
        set_present(made.spec, backoffLimit=job.find("backoffLimit"))
    set_present(made.spec, activeDeadlineSeconds=job.find("activeDeadlineSeconds"))
    if plain(job.find("podFailurePolicy")) == exit_code_policy(trainer.CONTAINER):
        found["restartPolicy"] = "ExitCode"
    template = job.find("template")
    if is_second(template, trainer.CONTAINER):
        made.spec["mainContainer"] = trainer.CONTAINER
    marks = {names.FRAMEWORK: "pytorch"} if "framework" in made.spec else {}
    set_templates(made, {"worker": found}, {"worker": template}, {"worker": marks})
    _override_container(made, own)
    return made


def trainer_job(runtime: Item) -> Item:
    """Return the replicated job that trains; an item without a value if none or several may.

    Trainer knows it by its label. Without the label, it is the job called node, or the only one.
    """
    jobs = runtime.find("spec", "template", "spec", "replicatedJobs").elements
    step = ("template", "metadata", "labels", trainer.STEP)
    labelled = [each for each in jobs if each.find(*step).value == trainer.TRAINER]
    named = [each for each in jobs if each.find("name").value == trainer.CONTAINER]
    found = labelled or named or jobs
    return found[0] if len(found) == 1 else NOTHING


def _override_container(made: Converted, own: Item) -> None:
    values: dict[str, Item] = {}
    set_present(values, **{key: own.find(key) for key in ("image", "command", "args")})
    set_present(values, resources=own.find("resourcesPerNode"))
    env = own.find("env").elements
    names_of = {each.find("name").as_text for each in env}
    spec = cast("dict[str, Any]", made.spec["template"]).get("spec", {})
    containers = spec.get("containers")
    if not (values or env) or not isinstance(containers, Item):
        return

    def override(container: Item) -> Draft:
        if container.find("name").value != trainer.CONTAINER:
            return container
        old = container.find("env").elements
        kept = [each for each in old if each.find("name").as_text not in names_of]
        return {**container.entries, **values, **({"env": [*kept, *env]} if env else {})}

    spec["containers"] = [override(each) for each in containers.elements]
