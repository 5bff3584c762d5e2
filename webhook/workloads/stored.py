"""A pod that the API server has stored, as it was when admission had ended.

What comes later is nobody's word. Sources, of k8s.io/kubernetes v1.36: pkg/registry/core/pod,
strategy.go (matchLabelKeys) and storage/storage.go (the binding); admission/podtopologylabels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.placement.fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject

# The lists of keys whose labels are merged into the labelSelector beside them, and as what.
_MERGED: Final = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
_WITH_SELECTORS: Final = frozenset(field.name for field in FIELDS if field.label_keys)
# The labels of its node that a pod gets when it is bound, whatever it had there.
_OF_NODE: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
# Fields in which the API server keeps an empty value; it drops any other.
_KEPT_EMPTY: Final = ("labelSelector", "namespaceSelector", "preference", "podAffinityTerm")


def is_stored(pod: JsonObject) -> bool:
    """Whether the API server has stored it: then it has a uid."""
    metadata = pod.get("metadata")
    stored = isinstance(metadata, dict) and bool(metadata.get("uid"))
    return stored and isinstance(pod.get("spec"), dict)


def as_admitted(pod: JsonObject) -> JsonObject:
    """The stored pod without its node, and without what the API server filled in after admission.

    The node stays if its author named it.
    """
    spec = {
        key: _unmerged(value) if key in _WITH_SELECTORS else value
        for key, value in pod["spec"].items()
    }
    if not is_bound(pod):
        return {**pod, "spec": spec}
    del spec["nodeName"]
    metadata, labels = pod["metadata"], pod["metadata"].get("labels")
    if isinstance(labels, dict):
        metadata = {**metadata, "labels": without_binding(labels)}
    return {**pod, "metadata": metadata, "spec": spec}


def as_stored(pod: JsonObject, stored: JsonObject) -> JsonObject:
    """The pod with the node, and the node's labels, that `stored` has."""
    if not is_bound(stored):
        return pod
    labels = stored["metadata"].get("labels") or {}
    of_node = {key: value for key, value in labels.items() if key in _OF_NODE}
    metadata = pod["metadata"]
    if of_node:
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), **of_node}}
    spec = {**pod["spec"], "nodeName": stored["spec"]["nodeName"]}
    return {**pod, "metadata": metadata, "spec": spec}


def is_bound(pod: JsonObject) -> bool:
    """Whether a scheduler has bound the pod to its node, which its author did not name.

    A binding is in no managedFields. Where they are cut (kubectl does) a scheduler is assumed.
    """
    if not pod["spec"].get("nodeName"):
        return False
    managed = pod["metadata"].get("managedFields")
    return not any(map(_names_node, managed if isinstance(managed, list) else ()))


def has_edited_tolerations(pod: JsonObject) -> bool:
    """Whether tolerations were written after the pod was created, which the API server allows.

    What admission adds to a new pod is in no managedFields, and what its author wrote is in one
    entry with its containers. Kueue adds those of its flavor when it starts a pod.
    """
    metadata = pod["metadata"]
    managed = metadata.get("managedFields")
    if names.KUEUE_PODSET in (metadata.get("labels") or {}) or not isinstance(managed, list):
        return False
    created = str(metadata.get("creationTimestamp") or "")
    for each in managed:
        fields = each.get("fieldsV1") if isinstance(each, dict) else None
        spec = fields.get("f:spec") if isinstance(fields, dict) else None
        if isinstance(spec, dict) and "f:tolerations" in spec:
            # The same client may have done both: then one entry has the later time.
            later = bool(created) and str(each.get("time") or "") > created
            if later or "f:containers" not in spec:
                return True
    return False


def without_binding(labels: Mapping[str, str]) -> dict[str, str]:
    """A pod's labels without those that a binding sets to its node's."""
    return {key: value for key, value in labels.items() if key not in _OF_NODE}


def normal(value: Any) -> Any:
    """A field of affinity, tolerations or spread as the API server stores it: without empty parts.

    Authors write `values: []`, `matchLabels: {}`, `value: ""` and nulls; none of them is stored.
    """
    if isinstance(value, list):
        return [normal(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: part if key == "matchLabels" else normal(part)
        for key, part in value.items()
        if part not in (None, "", [], {}) or (part == {} and key in _KEPT_EMPTY)
    }


def _names_node(managed: Any) -> bool:
    """Whether an entry of managedFields is of a request that wrote the node."""
    fields = managed.get("fieldsV1") if isinstance(managed, dict) else None
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    return isinstance(spec, dict) and "f:nodeName" in spec


def _unmerged(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmerged(each) for each in value]
    if not isinstance(value, dict):
        return value
    result = {key: _unmerged(part) for key, part in value.items()}
    selector = result.get("labelSelector")
    if isinstance(selector, dict) and isinstance(selector.get("matchExpressions"), list):
        # The API server refuses a pod whose author has named such a key in the selector too.
        left = [each for each in selector["matchExpressions"] if not _is_merged(each, value)]
        selector = {key: part for key, part in selector.items() if key != "matchExpressions"}
        result["labelSelector"] = {**selector, "matchExpressions": left} if left else selector
    return result


def _is_merged(expression: Any, beside: JsonObject) -> bool:
    """Whether an expression is what one of the lists of keys `beside` the selector became."""
    return isinstance(expression, dict) and any(
        expression.get("operator") == operator
        and isinstance(keys := beside.get(name), list)
        and expression.get("key") in keys
        for name, operator in _MERGED
    )
