"""Extract Runs from RayClusters and RayJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from webhook.convert.engines.parts import (
    NOTHING,
    begin,
    find,
    join_templates,
    read_template,
    set_templates,
    strip_env,
)
from webhook.run.backends import kuberay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft
    from webhook.convert.polyaxon.item import Item


def extract_ray(item: Item, driver: Item | None) -> Converted:
    """Return the Run of a RayCluster, and of the driver's Job if there is one."""
    made = begin(item, kuberay.KIND)
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
    set_templates(made, found, templates, {"driver": kuberay.driver_labels(name)})
    if driver is not None:
        own = kuberay.driver_env(name)
        # With the variables, the driver has a template of its own, unless all roles have them.
        roles = cast("dict[str, Any]", made.spec["replicas"])
        template = roles["driver"].get("template")
        if template is not None:
            strip_env(template, own)
            join_templates(made)
    return made


def _worker_group(made: Converted, cluster: Item) -> Item | None:
    """Return the first group with workers, which is the role worker."""
    groups = find(cluster, "workerGroupSpecs").elements
    group = next((each for each in groups if find(each, "replicas").value != 0), None)
    made.roles = {} if group is None else {"worker": group}
    return group


def extract_ray_job(item: Item) -> Converted:
    """Return the Run of a RayJob: its driver submits the entrypoint, which runs on the head."""
    made = begin(item, kuberay.JOB)
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
    set_templates(made, found, templates)
    if "template" not in found["driver"]:
        for replica in found.values():
            replica["template"] = made.spec["template"]
        made.spec["template"] = {}
    driver = read_template(own, {})
    containers = find(own, "spec", "containers").elements
    mains = find(head, "spec", "containers").elements
    main: Mapping[str, Draft] = containers[0].entries if containers else {}
    if own.value is None:
        image = find(mains[0], "image") if mains else NOTHING
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
