"""Settings that make the API server reject every pod that gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.pod_schema import text_rules, value_rules
from webhook.pod_schema.field_checks import Fault
from webhook.policy.findings import Kind
from webhook.policy.model import PlacementPolicy
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.placement.pod import PodPlacement
    from webhook.placement.schema.placement import PlacementModel
    from webhook.policy.findings import Finding, Severity
    from webhook.policy.policy_documents import Document

# Names of other PriorityClasses must not begin so.
_RESERVED: Final = "system-"
_ONCE: Final = " once the policy is enforced"
# By kind of object that a field names, and without which a pod is rejected: the path of all its
# objects in the API.
PATHS: Final[Mapping[str, CollectionPath]] = {
    "PriorityClass": CollectionPath("scheduling.k8s.io/v1", "priorityclasses"),
    "RuntimeClass": CollectionPath("node.k8s.io/v1", "runtimeclasses"),
}


def refused_settings(document: Document) -> Iterator[Finding]:
    """Yield settings of a policy with which every API server rejects a pod."""
    if not isinstance(document.model, PlacementPolicy):
        return
    for part, placement in document.model.spec.parts():
        for fault in _faults(placement):
            path = ("spec", part, *fault.path)
            what = f"the API server refuses pods that get it: {fault.message}"
            about = f"{document.model.name} {part} {fault.path}"
            yield document.finding(path, what, about=about, kind=Kind.REFUSED_PODS)


def _faults(placement: PlacementModel) -> Iterator[Fault]:
    if placement.annotations:
        yield from text_rules.annotation_faults(placement.annotations, ("annotations",))
    if placement.security_context:
        context = placement.security_context.model_dump(by_alias=True, exclude_none=True)
        yield from value_rules.faults(context, "PodSecurityContext", ("securityContext",))
    name = placement.priority_class_name or ""
    if name.startswith(_RESERVED) and name not in names.SYSTEM_CLASSES:
        yield Fault(
            ("priorityClassName",),
            f"{quoted(name)} is not one of {', '.join(names.SYSTEM_CLASSES)}, and no other "
            f"PriorityClass may have a name that begins with {_RESERVED}",
        )


def missing_classes(
    documents: Iterable[Document], kinds: Mapping[str, Collection[str]]
) -> Iterator[Finding]:
    """Yield settings that name missing objects. `kinds`: the cluster's objects' names, by kind."""
    for document, kind, path, name in _named(documents):
        if kind in kinds and name not in kinds[kind]:
            about = f"{document.model.name} {path}"
            # Under Audit it changes no pod yet.
            enforced = _is_enforced(document)
            what = _refusal(kind, name, kinds[kind], "" if enforced else _ONCE)
            severity: Severity = "error" if enforced else "warning"
            yield document.finding(path, what, severity, about=about, kind=Kind.REFUSED_PODS)


def refusals(
    placement: PodPlacement, kinds: Mapping[str, Collection[str]], setters: Mapping[str, str]
) -> Iterator[str]:
    """Yield why the cluster refuses a pod with this placement: fields that name missing objects.

    `kinds`: the cluster's objects' names, by kind, as in `missing_classes`. `setters`: by field the
    policy that sets it.
    """
    for field, kind, name in classes_of(placement):
        if kind in kinds and name not in kinds[kind]:
            by = f"policy {setters[field]} sets it: " if field in setters else ""
            yield f"{field}: {by}{_refusal(kind, name, kinds[kind])}"


def classes_of(placement: PodPlacement | PlacementModel) -> Iterator[tuple[str, str, str]]:
    """Yield the objects that a placement names and that a cluster may not have: field, kind and
    name.
    """
    if (name := placement.priority_class_name) and name not in names.SYSTEM_CLASSES:
        yield "priorityClassName", "PriorityClass", name
    if name := placement.runtime_class_name:
        yield "runtimeClassName", "RuntimeClass", name


def _is_enforced(document: Document) -> bool:
    model = document.model
    return isinstance(model, PlacementPolicy) and model.spec.enforcement == "Enforce"


def _refusal(kind: str, name: str, class_names: Collection[str], once: str = "") -> str:
    what = f"the cluster has no {kind} {quoted(name)}, and refuses pods that get it{once}"
    return what + (guess(name, tuple(sorted(class_names))) or "; create it, or name another")


def named_classes(documents: Iterable[Document]) -> dict[str, list[str]]:
    """By kind the objects that policies name and that a cluster may not have, in order."""
    names_by_kind: dict[str, set[str]] = {}
    for _, kind, _, name in _named(documents):
        names_by_kind.setdefault(kind, set()).add(name)
    return {kind: sorted(names) for kind, names in names_by_kind.items()}


def _named(
    documents: Iterable[Document],
) -> Iterator[tuple[Document, str, tuple[str, ...], str]]:
    """Document, kind, path and name."""
    for document in documents:
        if not isinstance(document.model, PlacementPolicy):
            continue
        for part, placement in document.model.spec.parts():
            for field, kind, name in classes_of(placement):
                if not (kind == "PriorityClass" and name.startswith(_RESERVED)):
                    yield document, kind, ("spec", part, field), name
