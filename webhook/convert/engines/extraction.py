"""Extract Runs from the objects of one engine each.

SparkApplications, RayClusters and RayJobs, the kinds of the training operator and the MPI operator,
Jobs and DaskJobs. Above 300 lines: one part for each engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from webhook.convert.engines.parts import (
    begin,
    first_of,
    is_second,
    read_replica,
    read_template,
    set_present,
    set_templates,
)
from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import NOTHING, Item
from webhook.run.backends import batch_job, dask_operator, kuberay, spark_operator
from webhook.run.backends.training_operator import MPIJOB_V1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft
    from webhook.run.backends.training_operator import JobKind

# Fields of a SparkApplication's driver that are fields of its container.
_IN_CONTAINER: Final = ("env", "envFrom", "volumeMounts", "securityContext", "lifecycle")
# Fields of the driver that are fields of its pod, and their names there.
_IN_POD: Final = {
    "serviceAccount": "serviceAccountName",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "schedulerName": "schedulerName",
    "priorityClassName": "priorityClassName",
    "podSecurityContext": "securityContext",
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
    "initContainers": "initContainers",
    "hostAliases": "hostAliases",
}


def extract_spark(item: Item, _: Item) -> Converted:
    """Return the Run of a SparkApplication: its driver, whose template or fields are the Run's."""
    made = begin(item, spark_operator.KIND)
    spec = item.find("spec")
    driver = spec.find("driver")
    made.replicas = driver if driver.value is not None else None
    replica: dict[str, Draft] = {}
    policy, retries = (spec.find("restartPolicy", key) for key in ("type", "onFailureRetries"))
    if policy.value in ("Never", "OnFailure"):
        replica["restartPolicy"] = policy
    if policy.value == "OnFailure" and retries.value is not None:
        made.spec["backoffLimit"] = retries
    template = driver.find("template")
    if is_second(template, spark_operator.CONTAINER):
        made.spec["mainContainer"] = spark_operator.CONTAINER
    set_templates(made, {"driver": replica}, {"driver": template})
    built = _spark_template(spec, driver)
    if template.value is not None:
        built = _merge_drafts(read_template(template, {}), _named_container(template, built))
    made.spec["template"] = built
    return made


def _named_container(template: Item, built: dict[str, Draft]) -> dict[str, Draft]:
    """Return the template of a driver's fields with its container at the place of the template's.

    Spark's container is the one of the name, else the first.
    """
    containers = template.find("spec", "containers").elements
    names_of = [container.find("name").value for container in containers]
    at = names_of.index(spark_operator.CONTAINER) if spark_operator.CONTAINER in names_of else 0
    spec = cast("dict[str, Any]", built["spec"])
    main, *sidecars = spec["containers"]
    if names_of:
        # Rendering makes the sizes of the template's resources: others are a difference.
        resources = containers[at].find("resources").value
        main = {k: v for k, v in main.items() if k != "resources" or resources is None}
        limit, request = (
            containers[at].find("resources", part, "memory") for part in ("limits", "requests")
        )
        if limit.value is not None and request.value not in (None, limit.value):
            # Spark sets both to one value.
            main["resources"] = {"requests": {"memory": limit}}
        main["name"] = names_of[at]
    merged = [
        _merge_drafts(dict(container.entries), main) if n == at else container
        for n, container in enumerate(containers)
    ]
    return {**built, "spec": {**spec, "containers": [*(merged or [main]), *sidecars]}}


def _merge_drafts(old: Mapping[str, Draft], new: Mapping[str, Draft]) -> dict[str, Draft]:
    """Return a mapping with the fields of both: of equal ones the new, lists one after another."""
    result = dict(old)
    for key, value in new.items():
        before = result.get(key)
        first, second = (
            draft.value if isinstance(draft, Item) else draft for draft in (before, value)
        )
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
    set_present(
        container,
        image=first_of(driver.find("image"), spec.find("image")),
        imagePullPolicy=spec.find("imagePullPolicy"),
        **{field: driver.find(field) for field in _IN_CONTAINER},
    )
    pod: dict[str, Draft] = {}
    set_present(
        pod,
        **{field: driver.find(name) for name, field in _IN_POD.items()},
        nodeSelector=first_of(driver.find("nodeSelector"), spec.find("nodeSelector")),
    )
    if secrets := spec.find("imagePullSecrets").elements:
        pod["imagePullSecrets"] = [{"name": secret} for secret in secrets]
    set_present(pod, volumes=spec.find("volumes"))
    cores: dict[str, Item] = {}
    cpu = first_of(driver.find("coreRequest"), driver.find("cores"))
    set_present(cores, limits=driver.find("coreLimit"), requests=cpu)
    container |= non_empty(resources={part: {"cpu": quantity} for part, quantity in cores.items()})
    metadata: dict[str, Draft] = {}
    set_present(metadata, labels=driver.find("labels"), annotations=driver.find("annotations"))
    return {
        **non_empty(metadata=metadata),
        "spec": {**pod, "containers": [container, *driver.find("sidecars").elements]},
    }


class _Cluster(NamedTuple):
    """Replicas, templates and commands by role: the head, and the first group with workers."""

    replicas: dict[str, dict[str, Draft]]
    templates: dict[str, Item]
    commands: dict[str, dict[str, Draft]]


def _read_cluster(made: Converted, cluster: Item, annotations: Item) -> _Cluster:
    made.replicas = cluster
    parts = {"head": cluster.find("headGroupSpec")}
    replicas: dict[str, dict[str, Draft]] = {"head": {}}
    groups = cluster.find("workerGroupSpecs").elements
    for group in [
        worker_group for worker_group in groups if worker_group.find("replicas").value != 0
    ][:1]:
        made.roles = {"worker": group}
        parts["worker"] = group
        replicas["worker"] = read_replica(group, ())
    templates = {role: part.find("template") for role, part in parts.items()}
    has_own_command = annotations.find(kuberay.OWN_COMMAND).as_text.lower() == "true"
    made.annotations = {k: v for k, v in made.annotations.items() if k != kuberay.OWN_COMMAND}
    commands = {} if has_own_command else {role: _start(role, part) for role, part in parts.items()}
    return _Cluster(replicas, templates, commands)


def _start(role: str, group: Item) -> dict[str, Draft]:
    """Return the command of a container whose program KubeRay starts; empty if it does not.

    It does unless the container's own command has the words. That command runs first then.
    """
    main = group.find("template", "spec", "containers", 0)
    words = (*main.find("command").elements, *main.find("args").elements)
    before = " ".join(word.as_text for word in words)
    if "ray start" in before:
        return {}
    given = group.find("rayStartParams").present
    parameters = {key: value.as_text for key, value in given.items()}
    return kuberay.start_command(role, parameters, before)


def extract_ray(item: Item, driver: Item) -> Converted:
    """Return the Run of a RayCluster, and of the driver's Job if there is one."""
    made = begin(item, kuberay.KIND)
    notes = item.find("metadata", "annotations")
    replicas, templates, commands = _read_cluster(made, item.find("spec"), notes)
    name = item.find("metadata", "name").as_text
    if driver is NOTHING:
        set_templates(made, replicas, templates, commands=commands)
        return made
    spec = driver.find("spec")
    replicas["driver"] = {}
    templates["driver"] = spec.find("template")
    limit = spec.find("backoffLimit")
    if limit.value == 0:
        replicas["driver"]["restartPolicy"] = "Never"
    else:
        set_present(made.spec, backoffLimit=limit)
    set_present(made.spec, activeDeadlineSeconds=spec.find("activeDeadlineSeconds"))
    marks, env = kuberay.driver_labels(name), kuberay.driver_env(name)
    set_templates(made, replicas, templates, {"driver": marks}, {"driver": env}, commands)
    return made


def extract_ray_job(item: Item, _: Item) -> Converted:
    """Return the Run of a RayJob: its driver submits the entrypoint, which runs on the head."""
    made = begin(item, kuberay.JOB)
    spec = item.find("spec")
    if spec.find("backoffLimit").value:
        made.spec["restartScope"] = "Run"
    notes = item.find("metadata", "annotations")
    replicas, templates, commands = _read_cluster(made, spec.find("rayClusterSpec"), notes)
    head, submitter = templates["head"], spec.find("submitterPodTemplate")
    replicas["driver"] = {}
    templates["driver"] = first_of(submitter, head)
    set_templates(made, replicas, templates, commands=commands)
    if "template" not in replicas["driver"]:
        for replica in replicas.values():
            replica["template"] = made.spec["template"]
        made.spec["template"] = {}
    driver = read_template(submitter, {})
    containers = submitter.find("spec", "containers").elements
    main: Mapping[str, Draft] = containers[0].entries if containers else {}
    if submitter.value is None:
        image = head.find("spec", "containers", 0, "image")
        main = kuberay.submitter(image if image.value is not None else None)
        driver = {"spec": {}}
    entrypoint = spec.find("entrypoint")
    if isinstance(entrypoint.value, str) and not main.get("command"):
        main = {**main, **kuberay.submit_command(entrypoint.value)}
    pod = driver["spec"]
    if main and isinstance(pod, dict):
        driver["spec"] = {**pod, "containers": [main, *containers[1:]]}
    replicas["driver"]["template"] = driver
    return made


def extract_job(item: Item, _: Item, *, kind: JobKind) -> Converted:
    made = begin(item, kind)
    spec = item.find("spec")
    made.replicas = spec.find(kind.replicas)
    roles = {str(key).lower(): role for role, key in kind.roles.items()}
    roles |= {"chief": "chief", "master": "master"} if kind.kind == "TFJob" else {}
    settings = cast("dict[str, Any]", made.spec.setdefault(kind.framework or "", {}))
    parts: dict[str, Item] = {}
    for key, replica in made.replicas.present.items():
        role = roles.get(key.lower())
        if role is not None and role not in parts:
            parts[role] = replica
    if kind.kind == "TFJob" and "master" in parts:
        settings["masterTaskType"] = "master"
    replicas = {
        role: read_replica(part, ("Never", "OnFailure", "ExitCode")) for role, part in parts.items()
    }
    templates = {role: part.find("template") for role, part in parts.items()}
    made.roles = parts
    _set_port(settings, kind, templates)
    if kind is MPIJOB_V1:
        # The policy at its older place, which the newer one replaces.
        older: dict[str, Draft] = {}
        set_present(older, cleanPodPolicy=spec.find("cleanPodPolicy"))
        made.spec = {**older, **made.spec}
        main = spec.find("mainContainer")
        if any(is_second(template, main.as_text) for template in templates.values()):
            made.spec["mainContainer"] = main
    elastic = spec.find("elasticPolicy")
    if elastic.value is not None and kind.framework == "pytorch":
        _complete_elastic(settings, elastic, replicas)
    if not settings:
        del made.spec[kind.framework or ""]
    if kind.container and any(
        is_second(template, kind.container) for template in templates.values()
    ):
        made.spec["mainContainer"] = kind.container
    set_templates(made, replicas, templates)
    return made


def extract_batch_job(item: Item, _: Item) -> Converted:
    """Return the Run of a Job: one master, or as many workers as completions."""
    made = begin(item, batch_job.KIND)
    made.replicas = spec = item.find("spec")
    counts = [count for count in map(spec.find, ("completions", "parallelism")) if count.value]
    role = "worker" if counts else "master"
    set_templates(
        made, {role: {"count": counts[0]} if counts else {}}, {role: spec.find("template")}
    )
    return made


def extract_dask(item: Item, _: Item) -> Converted:
    made = begin(item, dask_operator.KIND)
    made.replicas = item.find("spec")
    parts = {role: item.find("spec", *path) for role, path in dask_operator.SECTIONS.items()}
    made.roles = {role: part for role, part in parts.items() if part.value is not None}
    replicas = {
        role: read_replica(part, ()) if role == "worker" else {}
        for role, part in made.roles.items()
    }
    if "driver" in replicas:
        # The definition's default, where a Run's driver is rendered with Never.
        policy = parts["driver"].find("spec", "restartPolicy")
        if policy.value != "Never":
            default = dask_operator.DRIVER_DEFAULT
            replicas["driver"]["restartPolicy"] = policy if policy.value else default
    set_templates(made, replicas, made.roles)
    return made


def _set_port(settings: dict[str, Any], kind: JobKind, templates: Mapping[str, Item]) -> None:
    """Set the framework's port: of a TFJob if all roles have it, else that of the first role."""
    port_by_role = {role: operator_port(template, kind) for role, template in templates.items()}
    if kind.kind != "TFJob":
        first = next((role for role in kind.roles if role in port_by_role), "")
        port_by_role = {role: port for role, port in port_by_role.items() if role == first}
    ports = [*port_by_role.values()]
    if ports and all(port.value == ports[0].value for port in ports):
        set_present(settings, port=ports[0])


def operator_port(template: Item, kind: JobKind) -> Item:
    """Return the number of the main container's port by which the operator connects the roles."""
    main = _named(template.find("spec", "containers"), kind.container)
    return _named(main.find("ports"), kind.port).find("containerPort") if kind.port else NOTHING


def _named(listed: Item, name: str) -> Item:
    return next(
        (element for element in listed.elements if element.find("name").value == name), NOTHING
    )


def _complete_elastic(
    settings: dict[str, Any], policy: Item, replicas: Mapping[str, Mapping[str, Draft]]
) -> None:
    """Set the minimum, which a Run requires, and the processes at their older place.

    The operator has the maximum by default, and without workers no elastic job.
    """
    elastic = settings.pop("elastic", {})
    if "nprocPerNode" not in settings:
        set_present(settings, nprocPerNode=policy.find("nProcPerNode"))
    if "worker" in replicas:
        most = policy.find("maxReplicas")
        default = most if most.value is not None else replicas["worker"].get("count", 1)
        settings["elastic"] = {"minReplicas": default, **elastic}
