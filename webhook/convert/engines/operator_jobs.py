"""Extract Runs from the kinds of the training operator and the MPI operator, DaskJobs and Jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from webhook.convert.engines.parts import (
    begin,
    is_second,
    read_replica,
    set_present,
    set_templates,
)
from webhook.convert.polyaxon.item import NOTHING
from webhook.run.backends import batch_job, dask_operator
from webhook.run.backends.training_operator import MPIJOB_V1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.run.backends.training_operator import JobKind


def extract_job(item: Item, _: Item, *, kind: JobKind) -> Converted:
    """Return the Run of a kind with replicas by role."""
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
    found = {
        role: read_replica(each, ("Never", "OnFailure", "ExitCode")) for role, each in parts.items()
    }
    templates = {role: each.find("template") for role, each in parts.items()}
    made.roles = parts
    _set_port(settings, kind, templates)
    if kind is MPIJOB_V1:
        # The policy at its older place, which the newer one replaces.
        older: dict[str, Draft] = {}
        set_present(older, cleanPodPolicy=spec.find("cleanPodPolicy"))
        made.spec = {**older, **made.spec}
        main = spec.find("mainContainer")
        if any(is_second(each, main.as_text) for each in templates.values()):
            made.spec["mainContainer"] = main
    elastic = spec.find("elasticPolicy")
    if elastic.value is not None and kind.framework == "pytorch":
        _complete_elastic(settings, elastic, found)
    if not settings:
        del made.spec[kind.framework or ""]
    if kind.container and any(is_second(each, kind.container) for each in templates.values()):
        made.spec["mainContainer"] = kind.container
    set_templates(made, found, templates)
    return made


def extract_batch_job(item: Item, _: Item) -> Converted:
    """Return the Run of a Job: one master, or as many workers as completions."""
    made = begin(item, batch_job.KIND)
    made.replicas = spec = item.find("spec")
    counts = [each for each in map(spec.find, ("completions", "parallelism")) if each.value]
    role = "worker" if counts else "master"
    set_templates(
        made, {role: {"count": counts[0]} if counts else {}}, {role: spec.find("template")}
    )
    return made


def extract_dask(item: Item, _: Item) -> Converted:
    """Return the Run of a DaskJob."""
    made = begin(item, dask_operator.KIND)
    made.replicas = item.find("spec")
    parts = {role: item.find("spec", *path) for role, path in dask_operator.SECTIONS.items()}
    made.roles = {role: each for role, each in parts.items() if each.value is not None}
    found = {
        role: read_replica(each, ()) if role == "worker" else {}
        for role, each in made.roles.items()
    }
    if "driver" in found:
        # The definition's default, where a Run's driver is rendered with Never.
        policy = parts["driver"].find("spec", "restartPolicy")
        if policy.value != "Never":
            default = dask_operator.DRIVER_DEFAULT
            found["driver"]["restartPolicy"] = policy if policy.value else default
    set_templates(made, found, made.roles)
    return made


def _set_port(settings: dict[str, Any], kind: JobKind, templates: Mapping[str, Item]) -> None:
    """Set the framework's port: of a TFJob if all roles have it, else that of the first role."""
    found = {role: operator_port(each, kind) for role, each in templates.items()}
    if kind.kind != "TFJob":
        first = next((role for role in kind.roles if role in found), "")
        found = {role: each for role, each in found.items() if role == first}
    ports = [*found.values()]
    if ports and all(each.value == ports[0].value for each in ports):
        set_present(settings, port=ports[0])


def operator_port(template: Item, kind: JobKind) -> Item:
    """Return the number of the main container's port by which the operator connects the roles."""
    main = _named(template.find("spec", "containers"), kind.container)
    return _named(main.find("ports"), kind.port).find("containerPort") if kind.port else NOTHING


def _named(listed: Item, name: str) -> Item:
    return next((each for each in listed.elements if each.find("name").value == name), NOTHING)


def _complete_elastic(
    settings: dict[str, Any], policy: Item, found: Mapping[str, Mapping[str, Draft]]
) -> None:
    """Set the minimum, which a Run requires; the operator has the maximum by default."""
    elastic = settings.pop("elastic", {})
    if "master" not in found and "worker" in found:
        most = policy.find("maxReplicas")
        default = most if most.value is not None else found["worker"].get("count", 1)
        settings["elastic"] = {"minReplicas": default, **elastic}
