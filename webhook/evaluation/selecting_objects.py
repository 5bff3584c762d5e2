"""What else selects a pod by its labels, and by those that policies add: notes about each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.placement.label_values import holds
from webhook.placement.shapes import as_object, objects_in
from webhook.placement.trace import warning
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject, Requirement

_NAMED: Final = 3


class Selecting(NamedTuple):
    """A kind whose objects select pods of their namespace.

    field:  of its spec, a label selector; `plain`: a map of labels, and an empty one selects none
    newly:  what follows for a pod that it selects by a label of a policy
    no_more: what follows for a pod that it no longer selects
    adopts: whether its controller takes pods that have no controller
    """

    api_version: str
    resource: str
    field: str
    newly: str
    no_more: str = ""
    plain: bool = False
    adopts: bool = False


_ADOPTS: Final = "adopts the pod, and deletes it if it has enough others"
# Sources: PodControllerRefManager of pkg/controller; pkg/registry/core/pod/storage/eviction.go
# ("more than one PodDisruptionBudget"), k8s.io/kubernetes v1.36. A StatefulSet adopts only pods
# with names of its own.
KINDS: Final[Mapping[str, Selecting]] = {
    "ReplicaSet": Selecting("apps/v1", "replicasets", "selector", _ADOPTS, adopts=True),
    "DaemonSet": Selecting("apps/v1", "daemonsets", "selector", _ADOPTS, adopts=True),
    "Job": Selecting("batch/v1", "jobs", "selector", _ADOPTS, adopts=True),
    "ReplicationController": Selecting(
        "v1", "replicationcontrollers", "selector", _ADOPTS, plain=True, adopts=True
    ),
    "PodDisruptionBudget": Selecting(
        "policy/v1",
        "poddisruptionbudgets",
        "selector",
        "limits evictions of the pod",
        "no longer limits evictions of the pod",
    ),
    "Service": Selecting("v1", "services", "selector", "sends the pod requests", plain=True),
    "NetworkPolicy": Selecting(
        "networking.k8s.io/v1",
        "networkpolicies",
        "podSelector",
        "limits connections of the pod",
        "no longer limits connections of the pod",
    ),
}
_BUDGET: Final = "PodDisruptionBudget"


def is_selecting(value: JsonObject) -> bool:
    """Return whether an object is of these kinds; its apiVersion may be missing."""
    row = KINDS.get(str(value.get("kind")))
    return row is not None and value.get("apiVersion", row.api_version) == row.api_version


def merge_selecting(
    given: Sequence[tuple[str, JsonObject]], base: Sequence[tuple[str, JsonObject]]
) -> Sequence[tuple[str, JsonObject]]:
    """Return the objects of a namespace; `given` ones replace known ones of their kind and name."""
    merged = {(kind, _name(manifest)): (kind, manifest) for kind, manifest in (*base, *given)}
    return [*merged.values()]


def _name(value: JsonObject) -> str:
    return str(as_object(value.get("metadata")).get("name"))


def selector_only(value: JsonObject) -> JsonObject:
    """Return the parts of an object of these kinds that are read here."""
    metadata, spec = as_object(value.get("metadata")), as_object(value.get("spec"))
    kept = {key: spec[key] for key in ("selector", "podSelector") if key in spec}
    return {"metadata": {key: metadata.get(key) for key in ("name", "namespace")}, "spec": kept}


def notes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    objects: Iterable[tuple[str, JsonObject]],
    *,
    policies: Sequence[str],
    adoptable: bool,
) -> Iterator[str]:
    """Yield a warning for each effect of added labels; `objects` are of the pod's namespace, each
    with its kind.

    `policies` set the labels; `adoptable`: the pod will have no controller.
    """
    by = f"{'policies' if len(policies) > 1 else 'policy'} {first_few(policies, _NAMED)}: labels"
    effects: dict[tuple[str, str], list[str]] = {}
    budgets: list[str] = []
    added = False
    for kind, manifest in objects:
        row, name = KINDS[kind], _name(manifest)
        was, will = _selects(row, manifest, before), _selects(row, manifest, after)
        if kind == _BUDGET and will:
            budgets.append(name)
            added |= not was
        text = row.newly if will else row.no_more
        if was != will and text and (adoptable or not row.adopts):
            effects.setdefault((kind, text), []).append(name)
    for (kind, text), named in effects.items():
        yield warning(f"{by}: {kind} {first_few(named, _NAMED)} {text}")
    if added and len(budgets) > 1:
        which = first_few(sorted(budgets), _NAMED)
        text = f"the pod has several {_BUDGET}s ({which}): no eviction succeeds"
        yield warning(f"{by}: {text}")


def _selects(row: Selecting, value: JsonObject, labels: Mapping[str, str]) -> bool:
    selector = as_object(value.get("spec")).get(row.field)
    if not isinstance(selector, dict) or (row.plain and not selector):
        return False
    exact = selector if row.plain else as_object(selector.get("matchLabels"))
    further = () if row.plain else objects_in(selector.get("matchExpressions"))
    return all(labels.get(key) == text for key, text in exact.items()) and all(
        holds(_requirement(expression), labels.get(str(expression.get("key"))))
        for expression in further
    )


def _requirement(expression: JsonObject) -> Requirement:
    values = expression.get("values")
    return {
        "operator": str(expression.get("operator")),
        "values": values if isinstance(values, list) else [],
    }
