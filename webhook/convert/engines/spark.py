"""Extract Runs from SparkApplications: the driver, from its template and its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from webhook.convert.engines.parts import (
    begin,
    first_of,
    is_second,
    read_template,
    set_present,
    set_templates,
)
from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import Item
from webhook.run.backends import spark_operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft

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
    found: dict[str, Draft] = {}
    policy, retries = (spec.find("restartPolicy", each) for each in ("type", "onFailureRetries"))
    if policy.value in ("Never", "OnFailure"):
        found["restartPolicy"] = policy
    if policy.value == "OnFailure" and retries.value is not None:
        made.spec["backoffLimit"] = retries
    template = driver.find("template")
    if is_second(template, spark_operator.CONTAINER):
        made.spec["mainContainer"] = spark_operator.CONTAINER
    set_templates(made, {"driver": found}, {"driver": template})
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
    names_of = [each.find("name").value for each in containers]
    at = names_of.index(spark_operator.CONTAINER) if spark_operator.CONTAINER in names_of else 0
    spec = cast("dict[str, Any]", built["spec"])
    main, *sidecars = spec["containers"]
    if names_of:
        # Rendering makes the sizes of the template's resources: others are a difference.
        own = containers[at].find("resources").value
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
    set_present(
        container,
        image=first_of(driver.find("image"), spec.find("image")),
        imagePullPolicy=spec.find("imagePullPolicy"),
        **{own: driver.find(own) for own in _IN_CONTAINER},
    )
    pod: dict[str, Draft] = {}
    set_present(
        pod,
        **{own: driver.find(name) for name, own in _IN_POD.items()},
        nodeSelector=first_of(driver.find("nodeSelector"), spec.find("nodeSelector")),
    )
    if secrets := spec.find("imagePullSecrets").elements:
        pod["imagePullSecrets"] = [{"name": each} for each in secrets]
    set_present(pod, volumes=spec.find("volumes"))
    cores: dict[str, Item] = {}
    cpu = first_of(driver.find("coreRequest"), driver.find("cores"))
    set_present(cores, limits=driver.find("coreLimit"), requests=cpu)
    container |= non_empty(resources={part: {"cpu": each} for part, each in cores.items()})
    metadata: dict[str, Draft] = {}
    set_present(metadata, labels=driver.find("labels"), annotations=driver.find("annotations"))
    return {
        **non_empty(metadata=metadata),
        "spec": {**pod, "containers": [container, *driver.find("sidecars").elements]},
    }
