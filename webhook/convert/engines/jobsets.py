"""Extract Runs from JobSets, and from TrainJobs with their runtimes, which are JobSets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from webhook import names
from webhook.convert.engines.parts import NOTHING, begin, find, first_of, is_second, set_templates
from webhook.convert.polyaxon.draft import Converted, settled
from webhook.convert.polyaxon.item import Item, plain
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.run.backends import jobset, trainer
from webhook.run.backends.backend import exit_code_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.convert.polyaxon.draft import Draft

# Names of a JobSet's jobs that webhook/sources/jobset.yaml reads as workers, too.
_CALLED_WORKERS: Final = ("workers", "node", "nodes")


def extract_jobset(item: Item) -> Converted:
    """Return the Run of a JobSet, with the framework of its label."""
    made = begin(item, jobset.KIND)
    label = find(item, "metadata", "labels", names.FRAMEWORK)
    framework = label.value if label.value in FRAMEWORKS else None
    if framework:
        made.spec["framework"] = label
        made.labels = {k: v for k, v in made.labels.items() if k != names.FRAMEWORK}
        _read_settings(made, str(framework))
    spec = find(item, "spec")
    made.replicas = find(spec, "replicatedJobs")
    restarts = find(spec, "failurePolicy", "maxRestarts")
    if restarts.value is not None:
        made.spec |= {"restartScope": "Run", "backoffLimit": restarts}
    jobs: dict[str, Item] = {}
    known = ROLES[str(framework) if framework else None].known
    used = [each for each in made.replicas.elements if _has_pods(each)]
    jobs |= {name: each for each in used if (name := find(each, "name").as_text) in known}
    # Those that are called like workers go before others.
    called = [each for each in used if find(each, "name").as_text in _CALLED_WORKERS]
    for each in (*called, *(each for each in used if each not in called)):
        if find(each, "name").as_text not in known:
            alone = len(used) == 1 or each in called
            role = _role(each, framework, jobs, alone=alone)
            jobs |= {role: each} if role else {}
    made.roles = jobs
    limits = {role: find(each, "template", "spec", "backoffLimit") for role, each in jobs.items()}
    own = [each for each in limits.values() if each.value]
    if restarts.value is None:
        if own and len({each.value for each in own}) == 1:
            made.spec["backoffLimit"] = own[0]
        elif limits and all(each.value == 0 for each in limits.values()):
            made.spec["backoffLimit"] = next(iter(limits.values()))
    deadlines = [find(each, "template", "spec", "activeDeadlineSeconds") for each in jobs.values()]
    if deadlines and deadlines[0].value and len({each.value for each in deadlines}) == 1:
        made.spec["activeDeadlineSeconds"] = deadlines[0]
    found = {role: _of_replicated_job(made, each, limits[role]) for role, each in jobs.items()}
    templates = {role: find(each, "template", "spec", "template") for role, each in jobs.items()}
    marks = {names.FRAMEWORK: str(framework)} if framework else {}
    set_templates(made, found, templates, dict.fromkeys(templates, marks))
    return made


def _read_settings(made: Converted, framework: str) -> None:
    """Move the framework's settings from the annotation to the spec, if it can be read."""
    annotation = made.annotations.get(names.SETTINGS)
    try:
        settings = json.loads(annotation.as_text) if isinstance(annotation, Item) else None
    except ValueError:
        return
    if isinstance(settings, dict):
        made.spec[framework] = settings
        made.annotations = {k: v for k, v in made.annotations.items() if k != names.SETTINGS}


def _of_replicated_job(made: Converted, job: Item, limit: Item) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    spec = find(job, "template", "spec")
    replicas, completions = find(job, "replicas"), find(spec, "completions")
    jobs = 1 if replicas.value is None else replicas.value
    # Any other value is an error of the Run's count, at its place.
    if isinstance(jobs, int) and isinstance(completions.value, int) and completions.value > 1:
        found["count"] = completions.with_text("").with_value(completions.value * jobs)
    elif replicas.value is not None:
        found["count"] = replicas
    total = settled(made.spec.get("backoffLimit"))
    if limit.value == 0 and total != 0 and "restartScope" not in made.spec:
        found["restartPolicy"] = "Never"
    policy = find(spec, "podFailurePolicy")
    main = find(spec, "template", "spec", "containers")
    if policy.value and main.elements:
        name = find(main.elements[0], "name").as_text
        if plain(policy) == exit_code_policy(name):
            found["restartPolicy"] = "ExitCode"
    return found


def _role(job: Item, framework: Any, taken: Mapping[str, Item], *, alone: bool) -> str:
    """Return the role for a replicated job without the name of one; "" if there is none left.

    Master for one pod beside others, else worker.
    """
    free = [role for role in ROLES[framework].known if role not in taken]
    counts = (find(job, "replicas"), find(job, "template", "spec", "completions"))
    single = not alone and all(each.value in (None, 1) for each in counts)
    wanted = ("master", "worker") if single else ("worker",)
    return next((role for role in wanted if role in free), "")


def _has_pods(job: Item) -> bool:
    counts = ((), ("template", "spec"), ("template", "spec"))
    fields = ("replicas", "parallelism", "completions")
    return all(find(job, *path, name).value != 0 for path, name in zip(counts, fields, strict=True))


def extract_train_job(item: Item, runtime: Item) -> Converted:
    """Return the Run of a TrainJob and its runtime; the job's values win over the runtime's."""
    made = begin(item, trainer.KIND)
    own, policy = find(item, "spec", "trainer"), find(runtime, "spec", "mlPolicy")
    jobset_spec = find(runtime, "spec", "template", "spec")
    made.replicas = find(jobset_spec, "replicatedJobs")
    made.roles = {"worker": trainer_job(runtime)}
    job = find(trainer_job(runtime), "template", "spec")
    if find(policy, "torch").value is not None:
        made.spec["framework"] = "pytorch"
        in_runtime = find(policy, "torch", "numProcPerNode")
        processes = first_of(find(own, "numProcPerNode"), in_runtime)
        # Rendering writes the default of the runtime into the job.
        if processes.value is not None and (processes.value != trainer.UNSET or in_runtime.value):
            made.spec["pytorch"] = {"nprocPerNode": processes}
    found: dict[str, Draft] = {}
    count = first_of(find(own, "numNodes"), find(policy, "numNodes"))
    if count.value is not None:
        found["count"] = count
    restarts, limit = find(jobset_spec, "failurePolicy", "maxRestarts"), find(job, "backoffLimit")
    if restarts.value is not None:
        made.spec |= {"restartScope": "Run", "backoffLimit": restarts}
    elif limit.value is not None:
        made.spec["backoffLimit"] = limit
    deadline = find(job, "activeDeadlineSeconds")
    if deadline.value is not None:
        made.spec["activeDeadlineSeconds"] = deadline
    if plain(find(job, "podFailurePolicy")) == exit_code_policy(trainer.CONTAINER):
        found["restartPolicy"] = "ExitCode"
    template = find(job, "template")
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
    jobs = find(runtime, "spec", "template", "spec", "replicatedJobs").elements
    step = ("template", "metadata", "labels", trainer.STEP)
    labelled = [each for each in jobs if find(each, *step).value == trainer.TRAINER]
    named = [each for each in jobs if find(each, "name").value == trainer.CONTAINER]
    found = labelled or named or jobs
    return found[0] if len(found) == 1 else NOTHING


def _override_container(made: Converted, own: Item) -> None:
    """Set what a TrainJob says of its container in the runtime's template."""
    values = {key: find(own, key) for key in ("image", "command", "args")}
    values["resources"] = find(own, "resourcesPerNode")
    values = {key: each for key, each in values.items() if each.value is not None}
    env = find(own, "env").elements
    spec = cast("dict[str, Any]", made.spec["template"]).get("spec", {})
    containers = spec.get("containers")
    if (values or env) and isinstance(containers, Item):
        spec["containers"] = [
            {**each.entries, **values, **_added_env(each, env)}
            if find(each, "name").value == trainer.CONTAINER
            else each
            for each in containers.elements
        ]


def _added_env(container: Item, env: Sequence[Item]) -> dict[str, Draft]:
    """Return the container's variables with others, which replace those of the same name."""
    names_of = {find(each, "name").as_text for each in env}
    old = find(container, "env").elements
    kept = [each for each in old if find(each, "name").as_text not in names_of]
    return {"env": [*kept, *env]} if env else {}
