"""What the API server's admission plugins do to a pod, before webhooks and again after them.

A function for each plugin that does more than add tolerations; those are a table of placement.
Source: k8s.io/kubernetes v1.36, plugin/pkg/admission. Priority is part of the engine;
ServiceAccount's token volume is not known beforehand.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.decision.arrival import owned_by_daemon_set, selecting_owner
from webhook.evaluation import limit_ranges
from webhook.evaluation.selecting_objects import is_selecting, merge_selecting
from webhook.placement.owner_selector import SELECTING, selector_of
from webhook.placement.plugin_tolerations import (
    EXTENDED,
    OPTIONAL,
    RESTRICTION,
    Facts,
    added,
    default_tolerations_of,
)
from webhook.placement.pod_requests import DEVICE_CLASS, device_resources
from webhook.placement.shapes import as_object, objects_in
from webhook.placement.tolerations import NO_EXECUTE, normal
from webhook.workloads.stored_pod import is_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.nodes import Node
    from webhook.placement.owner_selector import OwnerSelector
    from webhook.placement.plugin_tolerations import Added
    from webhook.placement.shapes import JsonObject, Toleration
    from webhook.workloads.object import Object

_LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
# Fields in which plugins say what they did, which is about containers.
OF_PLUGINS: Final = (f"annotations[{_LIMIT_RANGER}]",)
_TOPOLOGY: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class Used(NamedTuple):
    """Requests of pods by the name of their node, and the same by namespace and run; of a pod
    without a run by its owner, as in `Job/train`."""

    by_node: Mapping[str, Mapping[str, int]]
    by_run: Mapping[tuple[str, str], Mapping[str, Mapping[str, int]]]


class PluginInputs(NamedTuple):
    """Objects that plugins read, and others that decide about a pod.

    runtime_classes: node.k8s.io/v1 RuntimeClasses by name, as far as they are known
    limit_ranges:    v1 LimitRanges by namespace; a missing namespace has none; None if unknown
    flavors:         Kueue's ResourceFlavors; None if unknown
    running:         whether the API server runs a plugin of OPTIONAL; a missing one is unknown
    owners:          objects that count their pods by a selector, by namespace, kind and name, as
                     far as they are known
    selecting:       objects that select pods, by namespace, each with its kind, as far as they are
                     known
    priorities:      PriorityClasses by name; None if they are unknown
    devices:         the resources that DeviceClasses provide; None if unknown
    daemon_sets:     the DaemonSets of a cluster, as far as they are known
    used:            what pods on the nodes request; None if unknown
    """

    runtime_classes: Mapping[str, JsonObject]
    limit_ranges: Mapping[str, Sequence[JsonObject]] | None
    flavors: Sequence[JsonObject] | None = None
    running: Mapping[str, bool] = MappingProxyType({})
    owners: Mapping[tuple[str, str, str], JsonObject] = MappingProxyType({})
    selecting: Mapping[str, Sequence[tuple[str, JsonObject]]] = MappingProxyType({})
    priorities: Mapping[str, JsonObject] | None = None
    devices: frozenset[str] | None = None
    daemon_sets: Sequence[Object] = ()
    used: Used | None = None

    def selector(self, pod: JsonObject, namespace: str) -> OwnerSelector | None:
        """Return that of the owner of the v1.Pod; None if it has none, or it is not known."""
        if not (self.owners and isinstance(pod.get("metadata"), dict)):
            return None
        owner = selecting_owner(pod)
        owner_object = owner and self.owners.get((namespace, owner.kind, owner.name))
        if not owner or not owner_object:
            return None
        # One that is not stored has no uid.
        uid = as_object(owner_object.get("metadata")).get("uid", owner.uid)
        return selector_of(owner_object) if uid == owner.uid else None


UNREAD: Final = PluginInputs({}, None)
_OWNERS: Final = tuple(kind for _, kind in SELECTING)
READ_OBJECTS: Final = (
    *("PriorityClass", "RuntimeClass", "LimitRange", "ResourceFlavor", DEVICE_CLASS),
    *_OWNERS,
)
# The plugin Priority has them without objects (SystemPriorityClasses, pkg/apis/scheduling/v1).
_SYSTEM_CLASSES: Final[Mapping[str, JsonObject]] = {
    "system-cluster-critical": {"value": 2_000_000_000},
    "system-node-critical": {"value": 2_000_001_000},
}
_PREEMPTS: Final = "PreemptLowerPriority"


def running_plugins(enabled: Iterable[str]) -> Mapping[str, bool]:
    """Return that the API server runs these plugins of OPTIONAL, and not the others."""
    return {name: name in enabled for name in OPTIONAL}


def inputs_of(classes: Mapping[str, Mapping[str, JsonObject]] | None) -> PluginInputs:
    """Return what plugins read among objects by kind and name; LimitRanges are unknown."""
    classes_by_kind = classes or {}
    flavors = (
        [*classes_by_kind["ResourceFlavor"].values()]
        if "ResourceFlavor" in classes_by_kind
        else None
    )
    return UNREAD._replace(
        runtime_classes=classes_by_kind.get("RuntimeClass", {}),
        flavors=flavors,
        priorities=classes_by_kind.get("PriorityClass"),
        devices=device_resources(classes_by_kind.get(DEVICE_CLASS)),
    )


def inputs_among(objects: Iterable[JsonObject], namespace: str = "") -> PluginInputs:
    """Return what plugins read among objects; of LimitRanges, ResourceFlavors and DeviceClasses a
    kind without an object is unknown.

    `namespace` is that of objects that name none.
    """
    owners: dict[tuple[str, str, str], JsonObject] = {}
    selecting: dict[str, list[tuple[str, JsonObject]]] = {}
    classes: dict[str, JsonObject] = {}
    priorities: dict[str, JsonObject] = {}
    ranges: dict[str, list[JsonObject]] = {}
    flavors: list[JsonObject] = []
    device_classes: dict[str, JsonObject] = {}
    for manifest in objects:
        metadata, kind = as_object(manifest.get("metadata")), str(manifest.get("kind"))
        where = str(metadata.get("namespace") or namespace)
        if is_selecting(manifest):
            selecting.setdefault(where, []).append((kind, manifest))
        if kind in _OWNERS:
            owners[where, kind, str(metadata.get("name"))] = manifest
        elif kind in ("PriorityClass", "RuntimeClass"):
            objects_by_name = priorities if kind == "PriorityClass" else classes
            objects_by_name[str(metadata.get("name"))] = manifest
        elif kind == "LimitRange":
            ranges.setdefault(str(metadata.get("namespace") or namespace), []).append(manifest)
        elif kind == "ResourceFlavor":
            flavors.append(manifest)
        elif kind == DEVICE_CLASS:
            device_classes[str(metadata.get("name"))] = manifest
    return PluginInputs(
        classes,
        ranges or None,
        flavors or None,
        owners=owners,
        selecting=selecting,
        priorities=priorities or None,
        devices=device_resources(device_classes or None),
    )


def merge_inputs(given: PluginInputs, base: PluginInputs) -> PluginInputs:
    """Return both; `given` objects come before known ones."""
    selecting = {
        space: merge_selecting(given.selecting.get(space, ()), base.selecting.get(space, ()))
        for space in (*base.selecting, *given.selecting)
    }
    priorities = {**(base.priorities or {}), **(given.priorities or {})} or base.priorities
    ranges = given.limit_ranges or base.limit_ranges
    if given.limit_ranges is not None and base.limit_ranges is not None:
        ranges = {
            name: [*given.limit_ranges.get(name, ()), *base.limit_ranges.get(name, ())]
            for name in (*base.limit_ranges, *given.limit_ranges)
        }
    flavors = base.flavors if given.flavors is None else [*given.flavors, *(base.flavors or ())]
    devices = given.devices if base.devices is None else base.devices | (given.devices or set())
    return PluginInputs(
        {**base.runtime_classes, **given.runtime_classes},
        ranges,
        flavors,
        {**base.running, **given.running},
        {**base.owners, **given.owners},
        selecting,
        priorities,
        devices,
        [*given.daemon_sets, *base.daemon_sets],
        base.used if given.used is None else given.used,
    )


def admit(
    pod: JsonObject,
    namespace: str,
    inputs: PluginInputs,
    node: Callable[[str], Node | None] | None,
    space: Mapping[str, str] = MappingProxyType({}),
) -> JsonObject:
    """Return the v1.Pod as plugins change it; what has an invalid type stays unchanged.

    A DaemonSet's new pod has the tolerations of its controller. `node` returns a node by its name;
    None if nodes are unknown. `space`: the namespace's labels.
    """
    spec, metadata = pod.get("spec"), pod.get("metadata")
    if not isinstance(spec, dict) or not isinstance(metadata, dict):
        return pod
    ranges = (inputs.limit_ranges or {}).get(namespace, ())
    changed, note = limit_ranges.with_defaults(spec, ranges)
    changed = _with_tolerations(changed, pod, inputs, space)
    changed = _with_runtime_class(changed, inputs.runtime_classes)
    annotations = metadata.get("annotations") or {}
    if note and isinstance(annotations, dict):
        metadata = {**metadata, "annotations": {**annotations, _LIMIT_RANGER: note}}
    bound_node = node(spec["nodeName"]) if node and isinstance(spec.get("nodeName"), str) else None
    labels = {
        key: bound_node.labels[key] for key in _TOPOLOGY if bound_node and key in bound_node.labels
    }
    pod_labels = metadata.get("labels") or {}
    if labels and isinstance(pod_labels, dict):
        metadata = {**metadata, "labels": {**pod_labels, **labels}}
    if changed is spec and metadata is pod["metadata"]:
        return pod
    return {**pod, "metadata": metadata, "spec": changed}


def made_by_daemon_set(pod: JsonObject) -> JsonObject | None:
    """Return the v1.Pod as a DaemonSet's controller makes it, by which it chooses nodes; None for
    others."""
    typed = isinstance(pod.get("spec"), dict) and isinstance(pod.get("metadata"), dict)
    if not typed or not owned_by_daemon_set(pod):
        return None
    return {**pod, "spec": _with_tolerations(pod["spec"], pod, UNREAD, {})}


def _with_tolerations(
    spec: JsonObject, pod: JsonObject, inputs: PluginInputs, space: Mapping[str, str]
) -> JsonObject:
    """Add the tolerations of the DaemonSet's controller, and of plugins that are known to run."""
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list) or not all(
        isinstance(toleration, dict) for toleration in tolerations
    ):
        return spec
    # A stored one has them from its controller, if that has made it.
    made = owned_by_daemon_set(pod) and not is_stored(pod)
    facts = Facts(spec, namespace=default_tolerations_of(space), daemon_set=made)
    result = _updated(tolerations, added(facts, ["DaemonSet"]))
    if inputs.running.get(RESTRICTION):
        result = _merged(
            [*result, *(addition.toleration for addition in added(facts, [RESTRICTION]))]
        )
    if inputs.running.get(EXTENDED):
        result = _updated(result, added(facts, [EXTENDED]))
    return spec if result == tolerations else {**spec, "tolerations": result}


def _updated(tolerations: Sequence[Toleration], more: Iterable[Added]) -> list[Toleration]:
    """Return the tolerations with others, which replace those of the same taints.

    Source: AddOrUpdateTolerationInPod of k8s.io/kubernetes/pkg/apis/core/v1/helper.
    """
    result = [*tolerations]
    for addition in more:
        reach = normal(addition.toleration).reach
        at = next(
            (at for at, toleration in enumerate(result) if normal(toleration).reach == reach), None
        )
        if at is None:
            result.append(addition.toleration)
        else:
            result[at] = addition.toleration
    return result


def possible(
    spec: JsonObject, inputs: PluginInputs, space: Mapping[str, str]
) -> Mapping[str, Sequence[Toleration]]:
    """Return the tolerations that plugins add of which it is unknown whether they run."""
    facts = Facts(spec, namespace=default_tolerations_of(space))
    unknown = [name for name in OPTIONAL if name not in inputs.running]
    tolerations_by_plugin = {
        name: [addition.toleration for addition in added(facts, [name])] for name in unknown
    }
    return {name: tolerations for name, tolerations in tolerations_by_plugin.items() if tolerations}


def with_more_tolerations(pod: JsonObject, more: Iterable[Toleration]) -> JsonObject:
    """Return the v1.Pod with these tolerations after its own."""
    spec = pod["spec"]
    return {**pod, "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), *more]}}


def _with_runtime_class(spec: JsonObject, runtime_classes: Mapping[str, JsonObject]) -> JsonObject:
    """RuntimeClass: merge its nodeSelector and tolerations, and set its overhead."""
    runtime_class = _class_of(spec, runtime_classes)
    if runtime_class is None or any(conflicts(spec, runtime_classes)):
        return spec
    result = {**spec}
    if overhead := as_object(as_object(runtime_class.get("overhead")).get("podFixed")):
        result["overhead"] = overhead
    scheduling = as_object(runtime_class.get("scheduling"))
    node_selector, selector = (
        spec.get("nodeSelector") or {},
        as_object(scheduling.get("nodeSelector")),
    )
    if selector and isinstance(node_selector, dict):
        result["nodeSelector"] = {**node_selector, **selector}
    more: list[Any] = [*objects_in(scheduling.get("tolerations"))]
    tolerations = spec.get("tolerations") or []
    if more and isinstance(tolerations, list) and all(isinstance(t, dict) for t in tolerations):
        result["tolerations"] = _merged([*tolerations, *more])
    return result


def conflicts(
    spec: JsonObject, runtime_classes: Mapping[str, JsonObject]
) -> Iterator[tuple[str, str]]:
    """Yield why the plugin RuntimeClass refuses a pod with this v1.PodSpec, after the field."""
    runtime_class = _class_of(spec, runtime_classes)
    if runtime_class is None:
        return
    name, node_selector = spec["runtimeClassName"], as_object(spec.get("nodeSelector"))
    selector = as_object(as_object(runtime_class.get("scheduling")).get("nodeSelector"))
    for key, value in selector.items():
        if node_selector.get(key, value) != value:
            why = (
                f"is {node_selector[key]}, and the RuntimeClass {name} of the pod selects "
                f"{key}={value}"
            )
            text = f"nodeSelector.{key}: {why}"
            yield f"nodeSelector[{key}]", text


class PriorityFault(NamedTuple):
    """Why the plugin Priority refuses a pod, or the PriorityClass on which that depends."""

    reason: str = ""
    unread: str = ""


def priority_fault(
    spec: JsonObject, priority_classes: Mapping[str, JsonObject] | None, default: str
) -> PriorityFault:
    """Return what is wrong with priority and preemptionPolicy of a v1.PodSpec that is created.

    `default`: the name of the default PriorityClass, if there is one. The API server takes any
    value in a workload's template. Source: admitPod of plugin/pkg/admission/priority.
    """
    written = [key for key in ("priority", "preemptionPolicy") if spec.get(key) is not None]
    name = str(spec.get("priorityClassName") or default)
    priority_class = _priority_class(name, priority_classes)
    value = priority_class.get("value") if priority_class else None
    if priority_class is None or not isinstance(value, int):
        return PriorityFault(unread=f"PriorityClass {name}" if written else "")
    given = {
        "priority": value,
        "preemptionPolicy": priority_class.get("preemptionPolicy") or _PREEMPTS,
    }
    for key in written:
        if spec[key] != given[key]:
            if not name and priority_classes is None:
                return PriorityFault(unread="the default PriorityClass")
            by = f"the PriorityClass {name} gives" if name else "a pod without a PriorityClass gets"
            text = f"{key}: {spec[key]} is not {given[key]}, which {by}; remove it"
            return PriorityFault(text)
    return PriorityFault()


def priority_of(
    spec: JsonObject, priority_classes: Mapping[str, JsonObject] | None, default: str
) -> int | None:
    """Return the priority of pods with this v1.PodSpec; None if their PriorityClass is unknown."""
    name = str(spec.get("priorityClassName") or default)
    value = (_priority_class(name, priority_classes) or {}).get("value")
    return value if isinstance(value, int) else None


def _priority_class(
    name: str, priority_classes: Mapping[str, JsonObject] | None
) -> JsonObject | None:
    if not name:
        return {"value": 0}
    return (priority_classes or {}).get(name) or _SYSTEM_CLASSES.get(name)


def _class_of(spec: JsonObject, runtime_classes: Mapping[str, JsonObject]) -> JsonObject | None:
    name = spec.get("runtimeClassName")
    runtime_class = runtime_classes.get(name) if isinstance(name, str) else None
    return runtime_class if isinstance(runtime_class, dict) else None


def _merged(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Return the tolerations without those that another one covers.

    Source: MergeTolerations of k8s.io/kubernetes/pkg/util/tolerations.
    """
    kept_tolerations: list[Toleration] = []
    for at, toleration in enumerate(tolerations):
        later = (other for other in tolerations[at + 1 :] if _given(other) != _given(toleration))
        if not any(_is_superset(other, toleration) for other in (*kept_tolerations, *later)):
            kept_tolerations.append(toleration)
    return kept_tolerations


def _is_superset(broad: Toleration, narrow: Toleration) -> bool:
    """Return what isSuperset in the same file does: an empty operator covers Equal as Equal does,
    and is not covered by it."""
    b, n = _given(broad), _given(narrow)
    if b == n:
        return True
    operator = b.get("operator", "")
    if b.get("key") != n.get("key") and ("key" in b or operator != "Exists"):
        return False
    if b.get("effect") not in (None, n.get("effect")):
        return False
    seconds = b.get("tolerationSeconds")
    if b.get("effect") == NO_EXECUTE and seconds is not None:
        narrow_seconds = n.get("tolerationSeconds")
        if narrow_seconds is None or narrow_seconds > seconds:
            return False
    equal = n.get("operator") == "Equal" and b.get("value") == n.get("value")
    return operator == "Exists" or (operator in ("", "Equal") and equal)


def _given(toleration: Toleration) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if value not in ("", None)}
