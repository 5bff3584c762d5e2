"""What is wrong with a pod template, by the pod schema and by what its kind is known to add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.pod_schema import fields, rules
from webhook.workloads.by_kind import KINDS, claim_names, group_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.workloads.template import PodTemplate

# The API server itself judges these kinds' templates; their controllers add no volumes but claims.
_JUDGED: Final = frozenset({"", "apps", "batch"})


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
    for each in found:
        if known or each.severity == "error":
            severity = each.severity if known else "warning"
            yield each._replace(path=(*template.path, *each.path), severity=severity)
