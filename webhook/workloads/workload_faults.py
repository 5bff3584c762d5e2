"""Check the pod templates of an object against the pod schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook.placement.label_values import expressions, holds
from webhook.placement.nodes import format_requirement
from webhook.placement.schema.syntax import MAX_NAME
from webhook.placement.shapes import as_object
from webhook.pod_schema import (
    field_checks,
    object_rules,
    template_rules,
    text_rules,
    value_rules,
)
from webhook.sources import SHIPPED
from webhook.strict import quoted
from webhook.workloads.by_kind import claim_names, group_of
from webhook.workloads.template import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate

# The API server validates these kinds' templates; their controllers add only volumes of claims.
_JUDGED: Final = frozenset({"", "apps", "batch"})
_SELECTING: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
# What controllers add to the names of what they make: a hash, the time in minutes.
_ADDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("StatefulSet", "CronJob"), "-0123456789"),
    "Job": "",
}
_LASTING: Final = (*_SELECTING, "ReplicationController")
# The restartPolicies that a kind permits.
_RESTARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_LASTING, ("Always",)),
    **dict.fromkeys(("Job", "CronJob"), ("OnFailure", "Never")),
}


def is_judged(template: PodTemplate) -> bool:
    """Return True if the API server itself validates the template."""
    return group_of(template.source) in _JUDGED


def template_faults(
    template: PodTemplate, sources: SourceTable = SHIPPED
) -> Iterator[field_checks.Fault]:
    """Yield the faults, with paths from the root of the object.

    In an unknown kind, a value that looks like a template may be something else. Then only probable
    typos are reported, as warnings.
    """
    source = template.source
    yield from count_faults(template, sources)
    if template.built is not None:
        # Faults are those of the template as it is written.
        if template.built.start is not None:
            yield from template_faults(
                replace(template, path=template.built.start, built=None, miscounted=()), sources
            )
        return
    is_known = (group_of(source), source.kind) in sources.template_kinds
    kind = field_checks.POD if template.is_pod else field_checks.TEMPLATE
    faults = [*field_checks.faults(template.template, kind, whole=is_known)]
    if is_known:
        volumes = set(claim_names(source, sources))
        more = not is_judged(template)
        of_spec = template_rules.faults(
            template.template.get("spec"), volumes=volumes, more_volumes=more
        )
        faults += [fault._replace(path=("spec", *fault.path)) for fault in of_spec]
        metadata = template.template.get("metadata")
        if isinstance(metadata, dict):
            faults += object_rules.label_faults(metadata.get("labels"), ("metadata", "labels"))
            faults += _of_annotations(template, metadata)
        if is_judged(template):
            faults += _of_kind(template)
    for fault in faults:
        if is_known or fault.severity == "error":
            severity = fault.severity if is_known else "warning"
            yield fault._replace(path=(*template.path, *fault.path), severity=severity)
    if is_known:
        yield from text_rules.name_faults(source.metadata)
    if is_judged(template):
        yield from _of_name(source)
        yield from _of_selector(template)


def _of_name(source: Object) -> Iterator[field_checks.Fault]:
    """Yield a fault for a name with which pods cannot be made: with what the controller adds, it
    must fit into a label, or be a host's name.

    Source: newRevision in pkg/controller/statefulset (name-hash is the label
    controller-revision-hash of its pods); ValidateCronJob and validateJobSpec of
    pkg/apis/batch/validation.
    """
    name, spec = source.metadata.get("name"), at(source.value, ("spec",))
    if not isinstance(name, str) or not isinstance(spec, dict):
        return
    added = _ADDED.get(source.kind)
    completions = spec.get("completions")
    indexed = source.kind == "Job" and spec.get("completionMode") == "Indexed"
    if "." in name and (indexed or source.kind == "StatefulSet"):
        text = "has a dot, and is a part of its pods' hostnames: want a-z, 0-9 and '-'"
        yield field_checks.Fault(("metadata", "name"), text)
    if indexed:
        added = f"-{completions - 1}" if type(completions) is int and completions > 0 else ""
    if added is not None and len(name) > (most := MAX_NAME - len(added)):
        text = f"has {len(name)} characters: want at most {most}, or its pods may be refused"
        yield field_checks.Fault(("metadata", "name"), text)


def _of_selector(template: PodTemplate) -> Iterator[field_checks.Fault]:
    """Yield the faults of a workload's selector, if there is one; it must match the template.

    Source: ValidateDeploymentSpec and its neighbours in pkg/apis/apps/validation; of a Job
    validateJobSpec, which has a generated selector unless manualSelector is set.
    """
    kind, spec = template.source.kind, as_object(template.source.value.get("spec"))
    selector, path = spec.get("selector"), ("spec", "selector")
    if kind not in (*_SELECTING, "Job"):
        return
    faults = [
        *field_checks.faults(selector, "LabelSelector"),
        *value_rules.faults(selector, "LabelSelector"),
    ]
    yield from (fault._replace(path=(*path, *fault.path)) for fault in faults)
    if any(fault.severity == "error" for fault in faults):
        return
    labels = as_object(at(template.template, ("metadata", "labels")))
    if kind == "Job" and spec.get("manualSelector") is not True:
        return
    for expression in expressions(as_object(selector)):
        if not holds(expression, labels.get(expression["key"])):
            is_single = expression["operator"] == "In" and len(expression["values"]) == 1
            what = (
                f"{expression['key']}={expression['values'][0]}"
                if is_single
                else format_requirement(expression)
            )
            text = f"the selector of the {kind} wants {what} of its pods"
            yield field_checks.Fault((*template.path, "metadata", "labels"), text)
            return


def count_faults(template: PodTemplate, sources: SourceTable) -> Iterator[field_checks.Fault]:
    """Yield a fault for each value that is no number of pods: an error in a known kind."""
    source = template.source
    is_known = (group_of(source), source.kind) in sources.pod_kinds
    for path, message in template.miscounted:
        if is_known:
            yield field_checks.Fault(path, message)
        else:
            text = f"{message}; here it is taken for {template.count}"
            yield field_checks.Fault(path, text, "warning")


def _of_annotations(
    template: PodTemplate, metadata: Mapping[str, Any]
) -> Iterator[field_checks.Fault]:
    spec = template.template.get("spec")
    yield from text_rules.annotation_faults(
        metadata.get("annotations"),
        ("metadata", "annotations"),
        bound=bool(at(spec, ("nodeName",))),
        # Other controllers may add containers.
        containers=template_rules.container_names(spec) if is_judged(template) else None,
    )
    for fault in template_rules.metadata_faults(metadata, spec):
        yield fault._replace(path=("spec", *fault.path))


def _of_kind(template: PodTemplate) -> Iterator[field_checks.Fault]:
    """Yield faults against the rules of the kind. Source: pkg/apis/batch and apps/validation."""
    kind, spec = template.source.kind, at(template.template, ("spec",))
    policy = spec.get("restartPolicy") if isinstance(spec, dict) else None
    allowed = _RESTARTS.get(kind)
    if isinstance(spec, dict) and allowed and (policy or "Always") not in allowed:
        problem = f"{quoted(str(policy))} is not" if policy else "is Always if it is left out: want"
        text = f"{problem} one of {', '.join(allowed)}, which a {kind} takes"
        yield field_checks.Fault(("spec", "restartPolicy"), text)
    if kind in _LASTING:
        for fault in template_rules.lasting_faults(spec, kind):
            yield fault._replace(path=("spec", *fault.path))
