"""Find the pod templates of any object, by kind or by shape.

Some kinds make pods of something else than a template, and some are unknown. Policies apply to
their pods as to all others, but the result cannot be predicted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.identity import identify
from webhook.placement.owner_selector import SELECTING, selector_of
from webhook.policy.findings import path_text
from webhook.shortening import first_few
from webhook.sources import SHIPPED
from webhook.workloads.by_kind import (
    fields_not_read,
    group_of,
    templates_of_known_kind,
)
from webhook.workloads.template import PodTemplate, at, count_at, count_problem
from webhook.workloads.trainjob import is_train_job, runtime_title, templates_of_train_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object

# Steps of a path that do not describe the purpose of a pod.
_PLAIN_STEPS: Final = frozenset({"spec", "template", "jobTemplate", "podTemplate", "jobSpec"})
_NAMES: Final = ("name", "groupName")
# API groups of Kubernetes, and others that are often deployed with workloads: all of their kinds
# that create pods are in the files of `webhook.sources`.
_NO_OTHERS: Final = frozenset(
    {
        *("", "apps", "batch", "policy", "autoscaling", "extensions", names.GROUP),
        *("monitoring.coreos.com", "cert-manager.io", "external-secrets.io", "kyverno.io"),
        *("kueue.x-k8s.io", "scheduling.volcano.sh", "karpenter.sh", "route.openshift.io"),
        *("networking.istio.io", "security.istio.io"),
    }
)
_OF_KUBERNETES: Final = ".k8s.io"
_NAMED: Final = 3


def pod_templates(
    source: Object, among: Sequence[Object] = (), sources: SourceTable = SHIPPED
) -> list[PodTemplate]:
    """Return the object's pod templates; none if it creates no pods.

    A missing template of a known kind is left out. `among` are objects beside it, to which it may
    refer.
    """
    if is_train_job(source):
        templates = templates_of_train_job(source, among, sources)
    else:
        templates = templates_of_known_kind(source, sources) or list(
            _by_shape(source, source.value, ())
        )
    if (group_of(source), source.kind) in SELECTING:
        selector = selector_of(source.value)
        templates = [replace(template, selector=selector) for template in templates]
    if len(templates) > 1 and any(_leads(template, sources) for template in templates):
        return [replace(template, led=True) for template in templates]
    return templates


def _leads(template: PodTemplate, sources: SourceTable) -> bool:
    labels, annotations = _keys(template)
    identity = identify(labels, annotations, {}, sources)
    return identity is not None and identity.role in names.COORDINATOR_ROLES


def _keys(template: PodTemplate) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the labels and annotations of the first replica, as far as they are valid."""
    metadata = template.pod(0).get("metadata")
    labels, annotations = (
        {key: text for key, text in mapping.items() if isinstance(text, str)}
        if isinstance(mapping := at(metadata, (name,)), dict)
        else {}
        for name in ("labels", "annotations")
    )
    return labels, annotations


def _by_shape(source: Object, value: Any, path: Path) -> Iterator[PodTemplate]:
    """Yield a template for every nested mapping whose spec has containers."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _by_shape(source, item, (*path, position))
    elif isinstance(value, dict):
        if _is_template(value):
            counts = ((*path[:-1], "replicas"), (*path, "replicas"))
            problems = (
                (count_path, count_problem(at(source.value, count_path))) for count_path in counts
            )
            yield PodTemplate(
                source,
                path,
                _part(source, path),
                _count(source, path),
                miscounted=tuple(
                    (count_path, message) for count_path, message in problems if message
                ),
            )
            return
        for key, child in value.items():
            if path or key not in ("metadata", "status"):
                yield from _by_shape(source, child, (*path, key))


def _is_template(value: JsonObject) -> bool:
    spec = value.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(container, dict) and "name" in container for container in containers)
    )


def _part(source: Object, path: Path) -> str:
    """Return the name of the pods: a name next to the template, else a step of its path."""
    holder: Any = source.value
    named = ""
    for step in path:
        if isinstance(step, str) and step not in _PLAIN_STEPS:
            named = step
        holder = holder[step]
        beside = holder if isinstance(holder, dict) else {}
        named = next((beside[k] for k in _NAMES if isinstance(beside.get(k), str)), named)
    return named


def _count(source: Object, path: Path) -> int:
    beside = count_at(source.value, (*path[:-1], "replicas"))
    return count_at(source.value, (*path, "replicas"), beside)


def unread(objects: Sequence[Object], sources: SourceTable = SHIPPED) -> list[str]:
    """Return lines about pods of these objects that are not known. Runs are skipped.

    There is one line per kind without a pod template, one for all unknown kinds, and one for each
    field that describes or changes pods and is not read. Kinds that are known to create no pods are
    skipped.
    """
    documents = [document for document in objects if not document.is_own_run]
    without = [
        document for document in documents if not pod_templates(document, documents, sources)
    ]
    jobs = [document for document in without if is_train_job(document)]
    return [
        *_without_template((document for document in without if document not in jobs), sources),
        *(
            f"{job.title} makes pods of {runtime_title(job)}, which is not given beside it"
            for job in jobs
        ),
        *_not_read(documents, sources),
        *_unmarked(documents, sources),
    ]


def _not_read(objects: Iterable[Object], sources: SourceTable) -> Iterator[str]:
    """Yield a line per kind and field."""
    made: dict[tuple[str, str], list[str]] = {}
    for document in objects:
        for path in fields_not_read(document, sources):
            made.setdefault((document.kind, path_text(path)), []).append(document.name)
    for (kind, field), names_of in made.items():
        which = first_few([f"{kind}/{name}" for name in names_of], _NAMED)
        yield f"{which}: {field} can change pods, and is not read"


def _unmarked(objects: Sequence[Object], sources: SourceTable) -> Iterator[str]:
    for document in objects:
        for template in pod_templates(document, objects, sources):
            labels, annotations = _keys(template)
            if template.unmarked and identify(labels, annotations, {}, sources) is None:
                yield f"{document.title}, {template.part}: {template.unmarked}"


def _without_template(objects: Iterable[Object], sources: SourceTable) -> list[str]:
    made: dict[str, list[Object]] = {}
    unknown: dict[str, None] = {}
    for document in objects:
        group = group_of(document)
        kinds = sources.pod_kinds.get((group, document.kind), ())
        if kinds and not any(kind.code for kind in kinds):
            made.setdefault(document.kind, []).append(document)
        elif group not in _NO_OTHERS and not group.endswith(_OF_KUBERNETES):
            unknown[document.kind] = None
    lines = [_line(kind, documents, sources) for kind, documents in made.items()]
    if unknown:
        which = ", ".join(unknown)
        lines.append(f"it is unknown whether {which} makes pods: it has no pod template")
    return lines


def _line(kind: str, documents: Sequence[Object], sources: SourceTable) -> str:
    first = documents[0]
    more = f" and {len(documents) - 1} more" if len(documents) > 1 else ""
    which = f"{first.title}{more}"
    if (group_of(first), kind) in sources.template_kinds:
        return f"{kind} makes pods; the pod template is missing: {which}"
    return f"{kind} makes pods; its templates are not read: {which}"
