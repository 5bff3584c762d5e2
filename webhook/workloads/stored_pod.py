"""A stored pod as it was right after admission, and a new one as it comes to it.

Later changes are not the author's. Sources, of k8s.io/kubernetes v1.36: pkg/registry/core/pod,
strategy.go (matchLabelKeys) and storage/storage.go (the binding); admission/podtopologylabels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.placement.fields import FIELDS, STORED_NORMAL
from webhook.placement.tolerations import NO_EXECUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject

# Lists of keys whose labels are merged into the labelSelector next to them, with the operator.
_MERGED: Final = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
_WITH_SELECTORS: Final = frozenset(field.name for field in FIELDS if field.label_keys)
_NORMAL: Final = frozenset(field.name for field in STORED_NORMAL)
# Labels that a pod gets from its node at the binding, replacing its own.
_OF_NODE: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
# Fields in which the API server keeps an empty value; it drops all other empty values.
_KEPT_EMPTY: Final = ("labelSelector", "namespaceSelector", "preference", "podAffinityTerm")


def is_stored(pod: JsonObject) -> bool:
    """Return True if the API server has stored the pod, which then has a uid."""
    metadata = pod.get("metadata")
    stored = isinstance(metadata, dict) and bool(metadata.get("uid"))
    return stored and isinstance(pod.get("spec"), dict)


def is_over(pod: JsonObject) -> bool:
    """Return True if the pod has ended, or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in names.TERMINAL_PHASES or bool(pod["metadata"].get("deletionTimestamp"))


def as_admitted(pod: JsonObject) -> JsonObject:
    """Return the stored pod without its node and the fields that were set after admission.

    A node that the author has named stays.
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
    """Return the pod with the node, and the node's labels, of `stored`."""
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
    """Return True if a scheduler has bound the pod, so that its author has not named the node.

    A binding is not in managedFields. Without managedFields (kubectl removes them) a binding is
    assumed.
    """
    if not pod["spec"].get("nodeName"):
        return False
    managed = pod["metadata"].get("managedFields")
    entries = managed if isinstance(managed, list) else ()
    return not any("f:nodeName" in _spec_of(entry) for entry in entries)


def has_edited_tolerations(pod: JsonObject) -> bool:
    """Return True if tolerations were added after the pod's creation, which the API server allows.

    Additions at admission are not in managedFields, and the author's tolerations are in one entry
    with the containers. Kueue adds those of its flavor when it starts a pod.
    """
    metadata = pod["metadata"]
    managed = metadata.get("managedFields")
    if names.KUEUE_PODSET in (metadata.get("labels") or {}) or not isinstance(managed, list):
        return False
    created = str(metadata.get("creationTimestamp") or "")
    for entry in managed:
        spec = _spec_of(entry)
        if "f:tolerations" in spec:
            # One client may have done both: the entry then has the later time.
            later = bool(created) and str(entry.get("time") or "") > created
            if later or "f:containers" not in spec:
                return True
    return False


def without_binding(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a pod's labels without those that a binding copies from its node."""
    return {key: value for key, value in labels.items() if key not in _OF_NODE}


def with_defaults(
    pod: JsonObject, default_priority_class: str, toleration_seconds: Mapping[str, int]
) -> JsonObject:
    """Return a new v1.Pod with the placement that the API server fills in before webhooks.

    `toleration_seconds`: of the plugin DefaultTolerationSeconds, by taint. Source: SetDefaults_Pod
    and SetDefaults_PodSpec of k8s.io/kubernetes/pkg/apis/core/v1, plugin/pkg/admission/priority and
    defaulttolerationseconds.
    """
    filled = {
        field.name: default_priority_class if field.of_cluster else field.filled_in
        for field in FIELDS
        if field.of_cluster or field.filled_in is not None
    }
    spec = {**pod["spec"]}
    spec |= {key: value for key, value in filled.items() if value != "" and _unset(spec, key)}
    tolerations = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": seconds}
        for key, seconds in toleration_seconds.items()
        if not any(
            toleration.get("key") in (None, "", key)
            and toleration.get("effect") in (None, "", NO_EXECUTE)
            for toleration in tolerations
        )
    ]
    return {**pod, "spec": {**spec, "tolerations": [*tolerations, *added]} if added else spec}


def _unset(spec: JsonObject, key: str) -> bool:
    return spec.get(key) in (None, "")


def normal_fields(fields: JsonObject) -> JsonObject:
    """Return fields of a pod's spec with those of the placement as stored: without empty values."""
    return {key: normal(value) if key in _NORMAL else value for key, value in fields.items()}


def normal(value: Any) -> Any:
    """Return a part of affinity, tolerations or spread as stored: without empty values.

    Authors write `values: []`, `matchLabels: {}`, `value: ""` and nulls, which are not stored.
    """
    if isinstance(value, list):
        return [normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: part if key == "matchLabels" else normal(part)
        for key, part in value.items()
        if part not in (None, "", [], {}) or (part == {} and key in _KEPT_EMPTY)
    }


def _spec_of(managed: Any) -> JsonObject:
    fields = managed.get("fieldsV1") if isinstance(managed, dict) else None
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    return spec if isinstance(spec, dict) else {}


def _unmerged(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmerged(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _unmerged(part) for key, part in value.items()}
    selector = result.get("labelSelector")
    if isinstance(selector, dict) and isinstance(selector.get("matchExpressions"), list):
        # The API server rejects a pod whose selector also has such a key from its author.
        left = [
            expression
            for expression in selector["matchExpressions"]
            if not _is_merged(expression, value)
        ]
        selector = {key: part for key, part in selector.items() if key != "matchExpressions"}
        result["labelSelector"] = {**selector, "matchExpressions": left} if left else selector
    return result


def _is_merged(expression: Any, beside: JsonObject) -> bool:
    """Return True if a list of keys next to the selector was merged into this expression."""
    return isinstance(expression, dict) and any(
        expression.get("operator") == operator
        and isinstance(keys := beside.get(name), list)
        and expression.get("key") in keys
        for name, operator in _MERGED
    )
