"""Extract Runs from RayClusters and RayJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from webhook.convert.engines.parts import (
    begin,
    first_of,
    join_templates,
    read_replica,
    read_template,
    set_present,
    set_templates,
    strip_env,
)
from webhook.convert.polyaxon.item import NOTHING
from webhook.run.backends import kuberay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.run.backends.backend import ObjectKind


def _begin(item: Item, kind: ObjectKind) -> Converted:
    made = begin(item, kind)
    made.annotations = {k: v for k, v in made.annotations.items() if k != kuberay.OWN_COMMAND}
    return made


def _read_cluster(
    made: Converted, cluster: Item
) -> tuple[dict[str, dict[str, Draft]], dict[str, Item]]:
    """Return replicas and templates by role: the head, and the first group with workers."""
    made.replicas = cluster
    found: dict[str, dict[str, Draft]] = {"head": {}}
    templates = {"head": cluster.find("headGroupSpec", "template")}
    groups = cluster.find("workerGroupSpecs").elements
    for group in [each for each in groups if each.find("replicas").value != 0][:1]:
        made.roles = {"worker": group}
        found["worker"] = read_replica(group, ())
        templates["worker"] = group.find("template")
    return found, templates


def extract_ray(item: Item, driver: Item) -> Converted:
    """Return the Run of a RayCluster, and of the driver's Job if there is one."""
    made = _begin(item, kuberay.KIND)
    found, templates = _read_cluster(made, item.find("spec"))
    name = item.find("metadata", "name").as_text
    if driver is NOTHING:
        set_templates(made, found, templates)
        return made
    spec = driver.find("spec")
    found["driver"] = {}
    templates["driver"] = spec.find("template")
    limit = spec.find("backoffLimit")
    if limit.value == 0:
        found["driver"]["restartPolicy"] = "Never"
    else:
        set_present(made.spec, backoffLimit=limit)
    set_present(made.spec, activeDeadlineSeconds=spec.find("activeDeadlineSeconds"))
    set_templates(made, found, templates, {"driver": kuberay.driver_labels(name)})
    # With the variables, the driver has a template of its own, unless all roles have them.
    roles = cast("dict[str, Any]", made.spec["replicas"])
    if "template" in roles["driver"]:
        strip_env(roles["driver"]["template"], kuberay.driver_env(name))
        join_templates(made)
    return made


def extract_ray_job(item: Item, _: Item) -> Converted:
    """Return the Run of a RayJob: its driver submits the entrypoint, which runs on the head."""
    made = _begin(item, kuberay.JOB)
    spec = item.find("spec")
    if spec.find("backoffLimit").value:
        made.spec["restartScope"] = "Run"
    found, templates = _read_cluster(made, spec.find("rayClusterSpec"))
    head, own = templates["head"], spec.find("submitterPodTemplate")
    found["driver"] = {}
    templates["driver"] = first_of(own, head)
    set_templates(made, found, templates)
    if "template" not in found["driver"]:
        for replica in found.values():
            replica["template"] = made.spec["template"]
        made.spec["template"] = {}
    driver = read_template(own, {})
    containers = own.find("spec", "containers").elements
    main: Mapping[str, Draft] = containers[0].entries if containers else {}
    if own.value is None:
        image = head.find("spec", "containers", 0, "image")
        main = kuberay.submitter(image if image.value is not None else None)
        driver = {"spec": {}}
    entrypoint = spec.find("entrypoint")
    if isinstance(entrypoint.value, str) and "command" not in main:
        main = {**main, "command": kuberay.submit_command(entrypoint.value)}
    pod = driver["spec"]
    if main and isinstance(pod, dict):
        driver["spec"] = {**pod, "containers": [main, *containers[1:]]}
    found["driver"]["template"] = driver
    return made
