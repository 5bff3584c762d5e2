"""JSON Patch (RFC 6902) from a pod and the placement that it shall have.

Only placement fields are ever touched, by construction: the operations are made from the fields of
PodPlacement and from nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from webhook.placement.pod import AFFINITY_LISTS, REQUIRED

if TYPE_CHECKING:
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject


class _Remove(TypedDict):
    op: str
    path: str


class Operation(_Remove, total=False):
    """One operation: `add` (which also replaces a member), `remove`; `path` is a JSON Pointer."""

    value: Any


def pointer(token: str) -> str:
    """A member's name as a JSON Pointer token (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def operations(pod: JsonObject, old: PodPlacement, new: PodPlacement) -> list[Operation]:
    """What turns `pod`, whose placement is `old`, into one with the placement `new`.

    Empty if nothing changes. Where the pod has no such parent, the whole parent is added. Setting
    priorityClassName also removes what the Priority admission plugin had filled in for the old
    class (priority, preemptionPolicy): it runs again and fills in what the new class says.
    """
    result: list[Operation] = []
    metadata: JsonObject = pod["metadata"]
    spec: JsonObject = pod["spec"]
    _members(result, "/metadata", metadata, "labels", old.labels, new.labels)
    _members(result, "/metadata", metadata, "annotations", old.annotations, new.annotations)
    _members(result, "/spec", spec, "nodeSelector", old.node_selector, new.node_selector)
    _members(result, "/spec", spec, "securityContext", old.security_context, new.security_context)
    _list(result, "tolerations", spec, old.tolerations, new.tolerations)
    _list(result, "topologySpreadConstraints", spec, old.topology_spread, new.topology_spread)
    if new.required is not old.required or new.lists is not old.lists:
        before: JsonObject = spec.get("affinity") or {}
        after = affinity_of(before, new)
        _members(result, "/spec", spec, "affinity", before, after)
    if new.scheduler_name != old.scheduler_name:
        result.append({"op": "add", "path": "/spec/schedulerName", "value": new.scheduler_name})
    if new.runtime_class_name != old.runtime_class_name:
        value = new.runtime_class_name
        result.append({"op": "add", "path": "/spec/runtimeClassName", "value": value})
    if new.priority_class_name != old.priority_class_name:
        value = new.priority_class_name
        result.append({"op": "add", "path": "/spec/priorityClassName", "value": value})
        result.extend(
            {"op": "remove", "path": f"/spec/{name}"}
            for name in ("priority", "preemptionPolicy")
            if name in spec
        )
    return result


def _members(
    result: list[Operation],
    parent: str,
    holder: JsonObject,
    name: str,
    old: JsonObject,
    new: JsonObject,
) -> None:
    """Operations for one object, member by member; the whole of it where there was none."""
    if new is old or new == old:
        return
    path = f"{parent}/{pointer(name)}"
    if not isinstance(holder.get(name), dict):
        result.append({"op": "add", "path": path, "value": new})
        return
    for key, value in new.items():
        if key not in old or old[key] != value:
            if isinstance(value, dict) and isinstance(old.get(key), dict):
                _members(result, path, old, key, old[key], value)
            else:
                result.append({"op": "add", "path": f"{path}/{pointer(key)}", "value": value})
    result.extend(
        {"op": "remove", "path": f"{path}/{pointer(key)}"} for key in old if key not in new
    )


def _list(
    result: list[Operation], name: str, spec: JsonObject, old: list[Any], new: list[Any]
) -> None:
    """Operations for one list of the spec: appended to if it only grows at its end, else set."""
    if new is old or new == old:
        return
    if old and len(new) > len(old) and new[: len(old)] == old:
        result.extend(
            {"op": "add", "path": f"/spec/{name}/-", "value": item} for item in new[len(old) :]
        )
    elif not new and name in spec:
        result.append({"op": "remove", "path": f"/spec/{name}"})
    else:
        result.append({"op": "add", "path": f"/spec/{name}", "value": new})


def affinity_of(before: JsonObject, placement: PodPlacement) -> JsonObject:
    """The pod's affinity object with the placement's terms and lists in it."""
    after = {
        key: dict(value) if isinstance(value, dict) else value for key, value in before.items()
    }
    if placement.required is not None:
        node_affinity = _holder(after, "nodeAffinity")
        required = dict(node_affinity.get(REQUIRED) or {})
        required["nodeSelectorTerms"] = placement.required
        node_affinity[REQUIRED] = required
    for name, entries in placement.lists.items():
        kind, key = AFFINITY_LISTS[name]
        _holder(after, kind)[key] = entries
    return after


def _holder(affinity: JsonObject, kind: str) -> JsonObject:
    if not isinstance(affinity.get(kind), dict):
        affinity[kind] = {}
    holder: JsonObject = affinity[kind]
    return holder
