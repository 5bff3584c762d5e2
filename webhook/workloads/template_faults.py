"""What is wrong with a pod template, by the pod schema and by what its kind is known to add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.pod_schema import fields, rules, scheduling_rules
from webhook.strict import shown
from webhook.workloads.by_kind import KINDS, claim_names, group_of
from webhook.workloads.template import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.workloads.template import PodTemplate

# The API server itself judges these kinds' templates; their controllers add no volumes but claims.
_JUDGED: Final = frozenset({"", "apps", "batch"})
_SELECTING: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
# By kind the restartPolicies that it takes.
_RESTARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((*_SELECTING, "ReplicationController"), ("Always",)),
    **dict.fromkeys(("Job", "CronJob"), ("OnFailure", "Never")),
}


def is_judged(template: PodTemplate) -> bool:
    """Whether the API server itself holds the template against the pod schema."""
    return group_of(template.source) in _JUDGED


def template_faults(template: PodTemplate) -> Iterator[fields.Fault]:
    """The faults, the paths from the root of the object.

    Where the kind is not known, what looks like a template may be something else: then only what
    looks like a typo is told, as a warning.
    """
    source = template.source
    known = (group_of(source), source.kind) in KINDS
    kind = fields.POD if template.is_pod else fields.TEMPLATE
    found = [*fields.faults(template.template, kind, whole=known)]
    if known:
        volumes = set(claim_names(source))
        more = not is_judged(template)
        of_spec = rules.faults(template.template.get("spec"), volumes=volumes, more_volumes=more)
        found += [each._replace(path=("spec", *each.path)) for each in of_spec]
        metadata = template.template.get("metadata")
        if isinstance(metadata, dict):
            found += scheduling_rules.labels(metadata.get("labels"), ("metadata", "labels"))
        if is_judged(template):
            found += _of_kind(template)
    for each in found:
        if known or each.severity == "error":
            severity = each.severity if known else "warning"
            yield each._replace(path=(*template.path, *each.path), severity=severity)


def _of_kind(template: PodTemplate) -> Iterator[fields.Fault]:
    """What the template's kind asks of it. Source: pkg/apis/batch and apps/validation."""
    kind, spec = template.source.kind, at(template.template, ("spec",))
    policy = spec.get("restartPolicy") if isinstance(spec, dict) else None
    allowed = _RESTARTS.get(kind)
    if isinstance(spec, dict) and allowed and (policy or "Always") not in allowed:
        found = f"{shown(str(policy))} is not" if policy else "is Always if it is left out: want"
        text = f"{found} one of {', '.join(allowed)}, which a {kind} takes"
        yield fields.Fault(("spec", "restartPolicy"), text)
    wanted = at(template.source.value, ("spec", "selector", "matchLabels"))
    labels = at(template.template, ("metadata", "labels"))
    if kind in _SELECTING and isinstance(wanted, dict):
        for key, value in wanted.items():
            if not isinstance(labels, dict) or labels.get(key) != value:
                text = f"the selector of the {kind} wants {key}={value} of its pods"
                yield fields.Fault(("metadata", "labels"), text)
                return
