"""Extract the fields of a Run from an engine's object, with their places in the file.

Each function returns the draft of a Run. What it leaves out, or changes, is found afterwards by
rendering the Run again (`difference.py`), so these functions warn of nothing.

Longer than 300 lines: one function for each kind, and what they share.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from webhook import names
from webhook.convert.polyaxon.draft import Converted, Draft, settled
from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.training_operator import MPIJOB_V1
from webhook.run.rendezvous.table import FRAMEWORKS, ROLES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.run.backends.backend import ObjectKind
    from webhook.run.backends.training_operator import JobKind

_TEMPLATE_METADATA: Final = ("labels", "annotations", "finalizers")
# Names of a JobSet's jobs that webhook/sources/jobset.yaml reads as workers, too.
_CALLED_WORKERS: Final = ("workers", "node", "nodes")
# Fields of a pod template that a Run sets itself.
_NOT_IN_TEMPLATE: Final = frozenset({"restartPolicy", "hostname", "subdomain"})


def extract_job(item: Item, kind: JobKind) -> Converted:
    """Return the Run of a kind with replicas by role."""
    made = _begin(item, kind)
    spec = find(item, "spec")
    replicas = find(spec, kind.replicas)
    made.replicas = replicas
    roles = {str(key).lower(): role for role, key in kind.roles.items()}
    roles |= {"chief": "chief", "master": "master"} if kind.kind == "TFJob" else {}
    templates: dict[str, Item] = {}
    found: dict[str, dict[str, Draft]] = {}
    parts: dict[str, Item] = {}
    for key, replica in entries(replicas).items():
        role = roles.get(key.lower())
        if role is None or role in found or replica.value is None:
            continue
        if kind.kind == "TFJob" and role == "master":
            _settings(made, kind)["masterTaskType"] = "master"
        found[role] = _replica(replica, ("Never", "OnFailure", "ExitCode"))
        templates[role] = find(replica, "template")
        parts[role] = replica
    made.roles = parts
    _set_port(made, kind, templates)
    if kind is MPIJOB_V1:
        _read_older_mpijob(made, spec, templates)
    elastic = find(spec, "elasticPolicy")
    if elastic.value is not None and kind.framework == "pytorch":
        _complete_elastic(made, kind, elastic, found)
    _drop_empty_settings(made, kind)
    if kind.container and any(_is_second(each, kind.container) for each in templates.values()):
        made.spec["mainContainer"] = kind.container
    _set_templates(made, found, templates)
    return made


def _read_older_mpijob(made: Converted, spec: Item, templates: Mapping[str, Item]) -> None:
    """Set the main container, and the policy at its older place, which the newer one replaces."""
    policy, main = find(spec, "cleanPodPolicy"), find(spec, "mainContainer")
    if policy.value is not None:
        made.spec.setdefault("cleanPodPolicy", policy)
    if any(_is_second(each, main.as_text) for each in templates.values()):
        made.spec["mainContainer"] = main


def extract_batch_job(item: Item) -> Converted:
    """Return the Run of a Job: one master, or as many workers as completions."""
    made = _begin(item, batch_job.KIND)
    spec = find(item, "spec")
    count = next(
        (each for each in (find(spec, "completions"), find(spec, "parallelism")) if each.value),
        None,
    )
    role = "master" if count is None else "worker"
    found: dict[str, dict[str, Draft]] = {role: {} if count is None else {"count": count}}
    made.replicas = spec
    _set_templates(made, found, {role: find(spec, "template")})
    return made


def extract_dask(item: Item) -> Converted:
    """Return the Run of a DaskJob."""
    made = _begin(item, dask_operator.KIND)
    made.replicas = find(item, "spec")
    found: dict[str, dict[str, Draft]] = {}
    sections: dict[str, Item] = {}
    for role, path in dask_operator.SECTIONS.items():
        section = find(item, "spec", *path)
        if section.value is None:
            continue
        sections[role] = section
        found[role] = _replica(section, ()) if role == "worker" else {}
    made.roles = sections
    if "driver" in sections:
        # The definition's default, where a Run's driver is rendered with Never.
        policy = find(sections["driver"], "spec", "restartPolicy")
        if policy.value != "Never":
            found["driver"]["restartPolicy"] = (
                policy if policy.value else dask_operator.DRIVER_DEFAULT
            )
    _set_templates(made, found, sections)
    return made


def extract_jobset(item: Item) -> Converted:
    """Return the Run of a JobSet, with the framework of its label."""
    made = _begin(item, jobset.KIND)
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
    _set_templates(made, found, templates, dict.fromkeys(templates, marks))
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


def extract_train_job(item: Item, runtime: Item) -> Converted:
    """Return the Run of a TrainJob and its runtime; the job's values win over the runtime's."""
    made = _begin(item, trainer.KIND)
    own, policy = find(item, "spec", "trainer"), find(runtime, "spec", "mlPolicy")
    jobset_spec = find(runtime, "spec", "template", "spec")
    made.replicas = find(jobset_spec, "replicatedJobs")
    made.roles = {"worker": trainer_job(runtime)}
    job = find(trainer_job(runtime), "template", "spec")
    if find(policy, "torch").value is not None:
        made.spec["framework"] = "pytorch"
        in_runtime = find(policy, "torch", "numProcPerNode")
        processes = _first(find(own, "numProcPerNode"), in_runtime)
        # Rendering writes the default of the runtime into the job.
        if processes.value is not None and (processes.value != trainer.UNSET or in_runtime.value):
            made.spec["pytorch"] = {"nprocPerNode": processes}
    found: dict[str, Draft] = {}
    count = _first(find(own, "numNodes"), find(policy, "numNodes"))
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
    if plain(find(job, "podFailurePolicy")) == jobset.exit_code_policy(trainer.CONTAINER):
        found["restartPolicy"] = "ExitCode"
    template = find(job, "template")
    if _is_second(template, trainer.CONTAINER):
        made.spec["mainContainer"] = trainer.CONTAINER
    marks = {names.FRAMEWORK: "pytorch"} if "framework" in made.spec else {}
    _set_templates(made, {"worker": found}, {"worker": template}, {"worker": marks})
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
    return found[0] if len(found) == 1 else _NOTHING


def _first(*found: Item) -> Item:
    return next((each for each in found if each.value is not None), _NOTHING)


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


def extract_ray(item: Item, driver: Item | None) -> Converted:
    """Return the Run of a RayCluster, and of the driver's Job if there is one."""
    made = _begin(item, kuberay.KIND)
    made.annotations = {k: v for k, v in made.annotations.items() if k != kuberay.OWN_COMMAND}
    made.replicas = spec = find(item, "spec")
    found: dict[str, dict[str, Draft]] = {"head": {}}
    templates = {"head": find(spec, "headGroupSpec", "template")}
    if group := _worker_group(made, spec):
        count = find(group, "replicas")
        found["worker"] = {} if count.value is None else {"count": count}
        templates["worker"] = find(group, "template")
    if driver is not None:
        found["driver"] = {}
        templates["driver"] = find(driver, "spec", "template")
        limit = find(driver, "spec", "backoffLimit")
        if limit.value == 0:
            found["driver"]["restartPolicy"] = "Never"
        elif limit.value is not None:
            made.spec["backoffLimit"] = limit
        deadline = find(driver, "spec", "activeDeadlineSeconds")
        if deadline.value is not None:
            made.spec["activeDeadlineSeconds"] = deadline
    name = find(item, "metadata", "name").as_text
    _set_templates(made, found, templates, {"driver": kuberay.driver_labels(name)})
    if driver is not None:
        own = kuberay.driver_env(name)
        # With the variables, the driver has a template of its own, unless all roles have them.
        roles = cast("dict[str, Any]", made.spec["replicas"])
        template = roles["driver"].get("template")
        if template is not None:
            _strip(template, own)
            _join_templates(made)
    return made


def _worker_group(made: Converted, cluster: Item) -> Item | None:
    """Return the first group with workers, which is the role worker."""
    groups = find(cluster, "workerGroupSpecs").elements
    group = next((each for each in groups if find(each, "replicas").value != 0), None)
    made.roles = {} if group is None else {"worker": group}
    return group


# Fields of a SparkApplication's driver that are fields of its container, or of its pod.
_IN_CONTAINER: Final = {
    "env": "env",
    "envFrom": "envFrom",
    "volumeMounts": "volumeMounts",
    "securityContext": "securityContext",
    "lifecycle": "lifecycle",
}
_IN_POD: Final = {
    "serviceAccount": "serviceAccountName",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "schedulerName": "schedulerName",
    "priorityClassName": "priorityClassName",
    "podSecurityContext": "securityContext",
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
    "initContainers": "initContainers",
    "hostAliases": "hostAliases",
}


def extract_spark(item: Item) -> Converted:
    """Return the Run of a SparkApplication: its driver, whose template or fields are the Run's."""
    made = _begin(item, spark_operator.KIND)
    spec = find(item, "spec")
    driver = find(spec, "driver")
    made.replicas = driver if driver.value is not None else None
    found: dict[str, Draft] = {}
    policy, retries = (find(spec, "restartPolicy", each) for each in ("type", "onFailureRetries"))
    if policy.value in ("Never", "OnFailure"):
        found["restartPolicy"] = policy
    if policy.value == "OnFailure" and retries.value is not None:
        made.spec["backoffLimit"] = retries
    template = find(driver, "template")
    if _is_second(template, spark_operator.CONTAINER):
        made.spec["mainContainer"] = spark_operator.CONTAINER
    _set_templates(made, {"driver": found}, {"driver": template})
    built = _spark_template(spec, driver)
    if template.value is not None:
        built = _merge_drafts(_template(template, {}), _named_container(template, built))
    made.spec["template"] = built
    return made


def _named_container(template: Item, built: dict[str, Draft]) -> dict[str, Draft]:
    """Return the template of a driver's fields with its container at the place of the template's.

    Spark's container is the one of the name, else the first.
    """
    containers = find(template, "spec", "containers").elements
    names_of = [find(each, "name").value for each in containers]
    at = names_of.index(spark_operator.CONTAINER) if spark_operator.CONTAINER in names_of else 0
    spec = cast("dict[str, Any]", built["spec"])
    main, *sidecars = spec["containers"]
    if names_of:
        # Rendering makes the sizes of the template's resources: others are a difference.
        own = find(containers[at], "resources").value
        main = {k: v for k, v in main.items() if k != "resources" or own is None}
        main["name"] = names_of[at]
    merged = [
        _merge_drafts(dict(each.entries), main) if n == at else each
        for n, each in enumerate(containers)
    ]
    return {**built, "spec": {**spec, "containers": [*(merged or [main]), *sidecars]}}


def _merge_drafts(old: Mapping[str, Draft], new: Mapping[str, Draft]) -> dict[str, Draft]:
    """Return a mapping with the fields of both: of equal ones the new, lists one after another."""
    result = dict(old)
    for key, value in new.items():
        before = result.get(key)
        first, second = (each.value if isinstance(each, Item) else each for each in (before, value))
        if isinstance(first, dict) and isinstance(second, dict):
            result[key] = _merge_drafts(first, second)
        elif isinstance(first, tuple | list) and isinstance(second, tuple) and key != "containers":
            result[key] = [*first, *second]
        else:
            result[key] = value
    return result


def _spark_template(spec: Item, driver: Item) -> dict[str, Draft]:
    """Return the template of a driver that has none, from the fields that Spark's settings have."""
    container: dict[str, Draft] = {"name": spark_operator.CONTAINER}
    image = _first(find(driver, "image"), find(spec, "image"))
    if image.value is not None:
        container["image"] = image
    if find(spec, "imagePullPolicy").value is not None:
        container["imagePullPolicy"] = find(spec, "imagePullPolicy")
    pod: dict[str, Draft] = {}
    for names_of, target in ((_IN_CONTAINER, container), (_IN_POD, pod)):
        for name, own in names_of.items():
            if find(driver, name).value is not None:
                target[own] = find(driver, name)
    if "nodeSelector" not in pod and find(spec, "nodeSelector").value is not None:
        pod["nodeSelector"] = find(spec, "nodeSelector")
    if secrets := find(spec, "imagePullSecrets").elements:
        pod["imagePullSecrets"] = [{"name": each} for each in secrets]
    if find(spec, "volumes").value is not None:
        pod["volumes"] = find(spec, "volumes")
    cores = {
        part: {"cpu": each}
        for part, each in (
            ("limits", find(driver, "coreLimit")),
            ("requests", _first(find(driver, "coreRequest"), find(driver, "cores"))),
        )
        if each.value is not None
    }
    if cores:
        container["resources"] = cores
    metadata = {
        key: find(driver, key)
        for key in ("labels", "annotations")
        if find(driver, key).value is not None
    }
    return {
        **({"metadata": metadata} if metadata else {}),
        "spec": {**pod, "containers": [container, *find(driver, "sidecars").elements]},
    }


def extract_ray_job(item: Item) -> Converted:
    """Return the Run of a RayJob: its driver submits the entrypoint, which runs on the head."""
    made = _begin(item, kuberay.JOB)
    made.annotations = {k: v for k, v in made.annotations.items() if k != kuberay.OWN_COMMAND}
    spec = find(item, "spec")
    made.replicas = cluster = find(spec, "rayClusterSpec")
    if find(spec, "backoffLimit").value:
        made.spec["restartScope"] = "Run"
    head = find(cluster, "headGroupSpec", "template")
    found: dict[str, dict[str, Draft]] = {"head": {}, "driver": {}}
    templates = {"head": head}
    if group := _worker_group(made, cluster):
        count = find(group, "replicas")
        found["worker"] = {} if count.value is None else {"count": count}
        templates["worker"] = find(group, "template")
    own = find(spec, "submitterPodTemplate")
    templates["driver"] = own if own.value is not None else head
    _set_templates(made, found, templates)
    if "template" not in found["driver"]:
        for replica in found.values():
            replica["template"] = made.spec["template"]
        made.spec["template"] = {}
    driver = _template(own, {})
    containers = find(own, "spec", "containers").elements
    mains = find(head, "spec", "containers").elements
    main: Mapping[str, Draft] = containers[0].entries if containers else {}
    if own.value is None:
        image = find(mains[0], "image") if mains else _NOTHING
        main = kuberay.submitter(image if image.value is not None else None)
        driver = {"spec": {}}
    entrypoint = find(spec, "entrypoint")
    if isinstance(entrypoint.value, str) and "command" not in main:
        main = {**main, "command": kuberay.submit_command(entrypoint.value)}
    pod = driver["spec"]
    if main and isinstance(pod, dict):
        driver["spec"] = {**pod, "containers": [main, *containers[1:]]}
    found["driver"]["template"] = driver
    return made


def _join_templates(made: Converted) -> None:
    """Set one template for all roles if those of the roles are equal now."""
    roles = cast("dict[str, Any]", made.spec["replicas"])
    templates = [each.get("template") for each in roles.values()]
    if all(settled(each) == settled(templates[0]) for each in templates):
        made.spec["template"] = templates[0]
        for each in roles.values():
            del each["template"]


def without_env(made: Converted, own: Mapping[str, list[dict[str, Any]]]) -> None:
    """Remove variables from the main containers that rendering adds again.

    own: by role. The roles have templates of their own, or all have the run's.
    """
    replicas: Any = made.spec["replicas"]
    for role, replica in replicas.items():
        template = replica.get("template")
        if template is not None:
            _strip(template, own[role])
    if made.spec["template"]:
        _strip(made.spec["template"], next(iter(own.values())))


def _strip(template: Any, own: list[dict[str, Any]]) -> None:
    spec = template["spec"]
    containers = settled(spec.get("containers"))
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        return
    items = spec["containers"]
    main = items.elements[0] if isinstance(items, Item) else items[0]
    env = containers[0].get("env") or []
    if not isinstance(env, list):
        return
    kept = [n for n, each in enumerate(env) if each not in own]
    fields: dict[str, Draft] = dict(main.entries)
    listed = main.entries["env"].elements if env else ()
    fields.pop("env", None)
    if kept:
        fields["env"] = [listed[n] for n in kept]
    rest = items.elements[1:] if isinstance(items, Item) else items[1:]
    spec["containers"] = [fields, *rest]


def _of_replicated_job(made: Converted, job: Item, limit: Item) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    spec = find(job, "template", "spec")
    replicas, completions = find(job, "replicas"), find(spec, "completions")
    if isinstance(completions.value, int) and completions.value > 1:
        jobs = replicas.value if isinstance(replicas.value, int) else 1
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
        if plain(policy) == jobset.exit_code_policy(name):
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


def _begin(item: Item, kind: ObjectKind) -> Converted:
    """Return the draft with metadata and all fields that are at one place."""
    metadata, spec = find(item, "metadata"), find(item, "spec")
    made = Converted(
        name=_given(find(metadata, "name")),
        namespace=_given(find(metadata, "namespace")),
        labels=dict(entries(find(metadata, "labels"))),
        annotations={
            key: each
            for key, each in entries(find(metadata, "annotations")).items()
            if key != names.LAST_APPLIED
        },
    )
    if kind.framework:
        made.spec["framework"] = kind.framework
    for mapping in kind.fields:
        if not mapping.engine or "*" in mapping.engine:
            continue
        found = find(spec, *mapping.engine.split("."))
        value = None if found.value is None else mapping.to_run(plain(found))
        if value is None or (mapping.only and value not in mapping.only):
            continue
        draft: Draft = found if value == plain(found) else found.with_value(value)
        *above, last = mapping.run.split(".")
        section: dict[str, Any] = made.spec
        for step in above:
            section = section.setdefault(step, {})
        section[last] = draft
    return made


def _given(item: Item) -> Item | None:
    return None if item.value is None else item


def _replica(replica: Item, policies: Collection[str]) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    count, policy = find(replica, "replicas"), find(replica, "restartPolicy")
    if count.value is not None:
        found["count"] = count
    if isinstance(policy.value, str) and policy.value in policies:
        found["restartPolicy"] = policy
    return found


def _settings(made: Converted, kind: ObjectKind) -> dict[str, Any]:
    found = made.spec.setdefault(kind.framework or "", {})
    return cast("dict[str, Any]", found)


def _drop_empty_settings(made: Converted, kind: ObjectKind) -> None:
    if not _settings(made, kind):
        del made.spec[kind.framework or ""]


def _set_port(made: Converted, kind: JobKind, templates: Mapping[str, Item]) -> None:
    """Set the framework's port: of a TFJob if all roles have it, else that of the first role."""
    found = {role: operator_port(each, kind) for role, each in templates.items()}
    if kind.kind != "TFJob":
        first = next((role for role in kind.roles if role in found), "")
        found = {role: each for role, each in found.items() if role == first}
    if len({each.value for each in found.values()}) == 1:
        (port, *_) = found.values()
        if port.value is not None:
            _settings(made, kind)["port"] = port


def operator_port(template: Item, kind: JobKind) -> Item:
    """Return the number of the main container's port by which the operator connects the roles."""
    containers = find(template, "spec", "containers").elements
    main = next((c for c in containers if find(c, "name").value == kind.container), None)
    ports = find(main, "ports").elements if main is not None else ()
    own = [each for each in ports if kind.port and find(each, "name").value == kind.port]
    return find(own[0], "containerPort") if own else _NOTHING


def _complete_elastic(
    made: Converted, kind: JobKind, policy: Item, found: Mapping[str, dict[str, Draft]]
) -> None:
    """Set the minimum, which a Run requires; the operator has the maximum by default."""
    settings = _settings(made, kind)
    settings.setdefault("elastic", {})
    if "master" in found or "worker" not in found:
        del settings["elastic"]
    elif "minReplicas" not in settings["elastic"]:
        most = find(policy, "maxReplicas")
        settings["elastic"]["minReplicas"] = (
            most if most.value is not None else found["worker"].get("count", 1)
        )


def _is_second(template: Item, container: str) -> bool:
    containers = find(template, "spec", "containers").elements
    return any(find(each, "name").value == container for each in containers[1:])


def _set_templates(
    made: Converted,
    found: dict[str, dict[str, Draft]],
    templates: Mapping[str, Item],
    marks: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Set one template if all roles have the same; else each role has its own.

    marks: by role, labels that rendering adds again.
    """
    drafts = {
        role: _template(each, (marks or {}).get(role, {})) for role, each in templates.items()
    }
    texts = [settled(each) for each in drafts.values()]
    if all(each == texts[0] for each in texts):
        made.spec["template"] = next(iter(drafts.values()), {})
    else:
        made.spec["template"] = {}
        for role, draft in drafts.items():
            found[role]["template"] = draft
    made.spec["replicas"] = found


def _template(template: Item, marks: Mapping[str, str]) -> dict[str, Draft]:
    metadata, spec = entries(find(template, "metadata")), entries(find(template, "spec"))
    result: dict[str, Draft] = {}
    kept: dict[str, Draft] = {
        key: metadata[key] for key in _TEMPLATE_METADATA if key in metadata and metadata[key].value
    }
    labels = entries(find(template, "metadata", "labels"))
    if any(labels[key].value == mark for key, mark in marks.items() if key in labels):
        left = {key: each for key, each in labels.items() if each.value != marks.get(key)}
        kept = {key: each for key, each in kept.items() if key != "labels"}
        kept |= {"labels": left} if left else {}
    if kept:
        result["metadata"] = kept
    result["spec"] = {
        key: each
        for key, each in spec.items()
        if key not in _NOT_IN_TEMPLATE and each.value is not None
    }
    return result


def entries(item: Item) -> Mapping[str, Item]:
    """Return the items of a mapping that are not null."""
    return {key: each for key, each in item.entries.items() if each.value is not None}


def find(item: Item | None, *path: str) -> Item:
    """Return the item at a path below; an item without a value if there is none."""
    for step in path:
        if item is None:
            break
        item = item.entries.get(step)
    return item if item is not None else _NOTHING


_NOTHING: Final = Item(None, Origin("", (1, 1), (1, 1)))
