"""A pod's resource requests, and whether an empty node has enough resources for them.

Source: PodRequests in k8s.io/component-helpers/resource/helpers.go, and the defaulting of requests
from limits in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.placement.quantity import InvalidQuantity, counted, nanos, unit_of
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject

# Amounts in nanos, by resource.
_Amounts: TypeAlias = dict[str, int]
_HUGE_PAGES: Final = "hugepages-"
_PODS = "pods"
DEVICE_CLASS: Final = "DeviceClass"
# Before the name of a DeviceClass: a resource of its devices, as its extendedResourceName is one.
DEVICES: Final = "deviceclass.resource.kubernetes.io/"
# Before a resource in requests: DRA finds devices on nodes without an amount of it.
_BY_DRA: Final = "DRA:"
# The resources of pod-level requests and limits, beside huge pages.
_OF_PODS: Final = ("cpu", "memory")


def requests(spec: JsonObject) -> Mapping[str, int]:
    """Return the amounts of a v1.PodSpec by resource, as the scheduler counts them, none of them
    zero.

    Containers and sidecars run together; each init container runs beside the sidecars before it;
    pod-level requests count instead, for resources that pods can request; overhead is added. What
    cannot be read counts as zero: the API server rejects it anyway.
    """
    total = _of_containers(spec, "requests")
    of_pod = spec.get("resources")
    if of_pod:
        _of_pod(total, of_pod)
    overhead = spec.get("overhead")
    if overhead:
        add_requests(total, amounts(overhead))
    return {name: counted(name, nano) for name, nano in total.items() if nano > 0}


def add_requests(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add amounts by resource to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def in_nanos(requests: Mapping[str, int]) -> Mapping[str, int]:
    """Return amounts as the scheduler counts them (cpu in thousandths) in nanos."""
    return {name: amount * unit_of(name) for name, amount in requests.items()}


def totals(spec: JsonObject, kind: str) -> Mapping[str, int]:
    """Return the pod's "requests" or "limits" in nanos, as LimitRanges for pods count them.

    Source: podRequests and podLimits in k8s.io/kubernetes/plugin/pkg/admission/limitranger.
    """
    of_pod = amounts(as_object(spec.get("resources")).get(kind))
    return _of_containers(spec, kind) | {name: of_pod[name] for name in of_pod.keys() & _OF_PODS}


def with_pod_requests(spec: JsonObject) -> JsonObject:
    """Return a v1.PodSpec with the pod-level requests that the API server gives a pod with
    pod-level limits, before any plugin changes its containers.

    Source: defaultPodRequests in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
    """
    pod_resources = as_object(spec.get("resources"))
    limits, given = amounts(pod_resources.get("limits")), amounts(pod_resources.get("requests"))
    of_containers = _of_containers(spec, "requests")
    added = {name: of_containers.get(name, limits.get(name)) for name in _OF_PODS}
    texts = {name: f"{nano}n" for name, nano in added.items() if nano and name not in given}
    if not limits or not texts:
        return spec
    return {
        **spec,
        "resources": {
            **pod_resources,
            "requests": {**as_object(pod_resources.get("requests")), **texts},
        },
    }


def extended_requests(spec: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the most nanos that a container of the v1.PodSpec requests of each extended resource;
    also what is requested by zero."""
    amount_by_name: _Amounts = {}
    for container in _containers(spec):
        for name, nano in of_container(container, "requests").items():
            if is_extended(name):
                amount_by_name[name] = max(nano, amount_by_name.get(name, 0))
    return amount_by_name


def is_best_effort(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod with this v1.PodSpec requests and limits neither CPU nor memory.

    Source: ComputePodQOS in k8s.io/kubernetes/pkg/apis/core/v1/helper/qos.
    """
    of_pod = spec.get("resources")
    holders: Iterable[Mapping[str, Any]] = [spec] if isinstance(of_pod, dict) else _containers(spec)
    return not any(
        amount > 0 and name in _OF_PODS
        for holder in holders
        for kind in ("requests", "limits")
        for name, amount in amounts(as_object(holder.get("resources")).get(kind)).items()
    )


def _containers(spec: Mapping[str, Any]) -> Iterator[JsonObject]:
    yield from objects_in(spec.get("containers"))
    yield from objects_in(spec.get("initContainers"))


def device_resources(classes: Mapping[str, JsonObject] | None) -> frozenset[str] | None:
    """Return the resources that these resource.k8s.io/v1 DeviceClasses, by name, provide.

    None if the classes are None: not known.
    """
    if classes is None:
        return None
    resource_names = (
        as_object(device_class.get("spec")).get("extendedResourceName")
        for device_class in classes.values()
    )
    named = (name for name in resource_names if isinstance(name, str))
    return frozenset([*named, *(f"{DEVICES}{class_name}" for class_name in classes)])


def with_devices(
    requests: Mapping[str, int],
    provided: Container[str] | None,
    nodes: Iterable[Mapping[str, int] | None],
) -> Mapping[str, int]:
    """Return the requests, with what DRA finds on nodes without an amount of it marked so.

    provided: what DeviceClasses provide; None if that is not known, then each resource that they
              can provide and none of the nodes has, as far as the nodes say
    nodes:    the allocatable of each
    Source: k8s.io/kubernetes v1.36, the scheduler's plugin noderesources, which leaves such a
    resource to dynamicresources.
    """
    if provided is None:
        able = [name for name in requests if is_extended(name) or name.startswith(DEVICES)]
        rooms = [*nodes] if able else []
        node_resources = {
            name for name in able if any(room is None or room.get(name) for room in rooms)
        }
        provided = [name for name in able if name not in node_resources]
    return {f"{_BY_DRA}{n}" if n in provided else n: amount for n, amount in requests.items()}


def devices_among(requests: Iterable[str]) -> Sequence[str]:
    """Return the resources that are marked so."""
    return sorted(name.removeprefix(_BY_DRA) for name in requests if name.startswith(_BY_DRA))


def is_extended(resource: str) -> bool:
    """Return whether it is an extended resource (IsExtendedResourceName in
    k8s.io/kubernetes/pkg/apis/core/helper/helpers.go), such as nvidia.com/gpu.
    """
    return "/" in resource and "kubernetes.io/" not in resource


def _of_containers(spec: JsonObject, kind: str) -> _Amounts:
    """Return the requests or limits of all containers together, as they run."""
    total: _Amounts = {}
    for container in objects_in(spec.get("containers")):
        add_requests(total, of_container(container, kind))
    sidecars: _Amounts = {}
    most: _Amounts = {}
    for container in objects_in(spec.get("initContainers")):
        asked = of_container(container, kind)
        if container.get("restartPolicy") == "Always":
            add_requests(total, asked)
            add_requests(sidecars, asked)
        else:
            # Of what it does not ask for, the sidecars are all that counts, and they are in the
            # total. So each container costs as much as it has itself, not as all before it have.
            _raise(most, {name: nano + sidecars.get(name, 0) for name, nano in asked.items()})
    _raise(total, most)
    return total


def _of_pod(total: _Amounts, resources: object) -> None:
    """Pod-level requests; a limit counts where neither pod nor containers request anything.

    For huge pages, which cannot be overcommitted, it counts in any case.
    """
    if isinstance(resources, dict):
        given = amounts(resources.get("requests"))
        for name, nano in amounts(resources.get("limits")).items():
            asked = nano if name.startswith(_HUGE_PAGES) else total.get(name, nano)
            given.setdefault(name, asked)
        total.update({name: nano for name, nano in given.items() if _is_for_pods(name)})


def _is_for_pods(resource: str) -> bool:
    return resource in _OF_PODS or resource.startswith(_HUGE_PAGES)


def of_container(container: JsonObject, kind: str) -> _Amounts:
    """Return a container's requests or limits; a limit requests as much where no request is
    given."""
    resources = as_object(container.get("resources"))
    limits = amounts(resources.get("limits"))
    return limits if kind == "limits" else limits | amounts(resources.get("requests"))


def amounts(given: object) -> dict[str, int]:
    """Return a v1.ResourceList in nanos, without what cannot be read."""
    result: _Amounts = {}
    if isinstance(given, dict):
        for name, text in given.items():
            if isinstance(text, str | int | float):
                try:
                    result[name] = nanos(text)
                except InvalidQuantity:
                    continue
    return result


def _raise(total: _Amounts, least: Mapping[str, int]) -> None:
    for name, nano in least.items():
        if nano > total.get(name, 0):
            total[name] = nano


class Lack(NamedTuple):
    """How much of a resource is requested and available, as the scheduler counts."""

    resource: str
    asked: int
    available: int


def lacking(requests: Mapping[str, int], allocatable: Mapping[str, int] | None) -> Lack | None:
    """Return the first resource, by name, of which the pod requests more than the node's
    allocatable.

    None also if the node reports no allocatable. Usage by other pods is not considered.
    """
    if allocatable is None:
        return None
    if allocatable.get(_PODS, 0) < 1:
        return Lack(_PODS, 1, allocatable.get(_PODS, 0))
    if all(allocatable.get(name, 0) >= asked for name, asked in requests.items()):
        return None
    lacks = (
        Lack(resource, asked, available)
        for name, asked in requests.items()
        for resource in (name.removeprefix(_BY_DRA),)
        for available in (allocatable.get(resource, 0),)
        if available < asked and (available or resource == name)
    )
    return min(lacks, default=None)
