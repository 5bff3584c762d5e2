"""Extract Runs from the kinds of the training operator and the MPI operator, DaskJobs and Jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from webhook.convert.engines.parts import (
    NOTHING,
    begin,
    entries,
    find,
    is_second,
    read_replica,
    set_templates,
)
from webhook.run.backends import batch_job, dask_operator
from webhook.run.backends.training_operator import MPIJOB_V1

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Converted, Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.run.backends.backend import ObjectKind
    from webhook.run.backends.training_operator import JobKind


def extract_job(item: Item, kind: JobKind) -> Converted:
    """Return the Run of a kind with replicas by role."""
    made = begin(item, kind)
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
        found[role] = read_replica(replica, ("Never", "OnFailure", "ExitCode"))
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
    if kind.container and any(is_second(each, kind.container) for each in templates.values()):
        made.spec["mainContainer"] = kind.container
    set_templates(made, found, templates)
    return made


def _read_older_mpijob(made: Converted, spec: Item, templates: Mapping[str, Item]) -> None:
    """Set the main container, and the policy at its older place, which the newer one replaces."""
    policy, main = find(spec, "cleanPodPolicy"), find(spec, "mainContainer")
    if policy.value is not None:
        made.spec.setdefault("cleanPodPolicy", policy)
    if any(is_second(each, main.as_text) for each in templates.values()):
        made.spec["mainContainer"] = main


def extract_batch_job(item: Item) -> Converted:
    """Return the Run of a Job: one master, or as many workers as completions."""
    made = begin(item, batch_job.KIND)
    spec = find(item, "spec")
    count = next(
        (each for each in (find(spec, "completions"), find(spec, "parallelism")) if each.value),
        None,
    )
    role = "master" if count is None else "worker"
    found: dict[str, dict[str, Draft]] = {role: {} if count is None else {"count": count}}
    made.replicas = spec
    set_templates(made, found, {role: find(spec, "template")})
    return made


def extract_dask(item: Item) -> Converted:
    """Return the Run of a DaskJob."""
    made = begin(item, dask_operator.KIND)
    made.replicas = find(item, "spec")
    found: dict[str, dict[str, Draft]] = {}
    sections: dict[str, Item] = {}
    for role, path in dask_operator.SECTIONS.items():
        section = find(item, "spec", *path)
        if section.value is None:
            continue
        sections[role] = section
        found[role] = read_replica(section, ()) if role == "worker" else {}
    made.roles = sections
    if "driver" in sections:
        # The definition's default, where a Run's driver is rendered with Never.
        policy = find(sections["driver"], "spec", "restartPolicy")
        if policy.value != "Never":
            found["driver"]["restartPolicy"] = (
                policy if policy.value else dask_operator.DRIVER_DEFAULT
            )
    set_templates(made, found, sections)
    return made


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
    return find(own[0], "containerPort") if own else NOTHING


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
