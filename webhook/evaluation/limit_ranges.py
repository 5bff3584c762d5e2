"""What the plugin LimitRanger gives a pod, and why it refuses one.

Source: k8s.io/kubernetes v1.36, plugin/pkg/admission/limitranger. Its amounts are compared in
thousandths, of whatever resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.placement.pod_requests import amounts, of_container, totals, with_pod_requests
from webhook.placement.quantity import counted, format_quantity
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.placement.shapes import JsonObject

_THOUSANDTH: Final = 10**6
_KINDS: Final = ("requests", "limits")
_LISTS: Final = {"containers": "container", "initContainers": "init container"}


def with_defaults(spec: JsonObject, ranges: Iterable[JsonObject]) -> tuple[JsonObject, str]:
    """Give each container of a v1.PodSpec the requests and limits that it lacks.

    Also return what the plugin then says of it in an annotation; empty for nothing.
    """
    note = ""
    for limit_range in ranges:
        requests, limits = _defaults(limit_range)
        if not requests and not limits:
            continue
        spec = with_pod_requests(spec)
        given: list[str] = []
        for key, noun in _LISTS.items():
            if isinstance(spec.get(key), list):
                containers = [
                    _defaulted(container, requests, limits, noun, given) for container in spec[key]
                ]
                spec = {**spec, key: containers}
        note = f"LimitRanger plugin set: {'; '.join(given)}" if given else note
    return spec, note


def _defaults(limit_range: JsonObject) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the default requests and limits of containers.

    A maximum is the default limit, and a default limit or a minimum the default request. Source:
    SetDefaults_LimitRangeItem, k8s.io/kubernetes/pkg/apis/core/v1.
    """
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in _items(limit_range, "Container"):
        default = {**as_object(item.get("max")), **as_object(item.get("default"))}
        limits |= default
        requests |= {**as_object(item.get("min")), **default}
        requests |= as_object(item.get("defaultRequest"))
    return requests, limits


def _defaulted(
    container: Any, requests: JsonObject, limits: JsonObject, noun: str, given: list[str]
) -> Any:
    if not isinstance(container, dict) or not isinstance(container.get("resources") or {}, dict):
        return container
    container_resources = container.get("resources") or {}
    own_limits = as_object(container_resources.get("limits"))
    # A container's own limit is its request before any plugin runs.
    own_requests = {**own_limits, **as_object(container_resources.get("requests"))}
    for missing, what in (
        (requests.keys() - own_requests.keys(), "request"),
        (limits.keys() - own_limits.keys(), "limit"),
    ):
        if missing:
            given.append(f"{', '.join(sorted(missing))} {what} for {noun} {container.get('name')}")
    resources = {
        **container_resources,
        "requests": {**requests, **own_requests},
        "limits": {**limits, **own_limits},
    }
    return {**container, "resources": resources}


def faults(spec: JsonObject, ranges: Iterable[JsonObject]) -> Iterator[str]:
    """Yield why LimitRanges refuse a pod with this v1.PodSpec, which has their defaults.

    Also why the API server refuses it because of them: a container that requests more than the
    limit that it was given. Source: PodValidateLimitFunc.
    """
    ranges = tuple(ranges)
    of_containers = [item for limit_range in ranges for item in _items(limit_range, "Container")]
    of_pods = [item for limit_range in ranges for item in _items(limit_range, "Pod")]
    for key, noun in _LISTS.items() if of_containers else ():
        for container in objects_in(spec.get(key)):
            requests, limits = (of_container(container, kind) for kind in _KINDS)
            wrong = {
                name: f"requests {_text(name, nano)}, more than its limit"
                for name, nano in requests.items()
                if nano > limits.get(name, nano)
            }
            for item in of_containers:
                wrong |= _broken(item, requests, limits)
            yield from _told(f"{noun} {container.get('name')}", wrong)
    if of_pods:
        spec = with_pod_requests(spec)
        asked, most = (totals(spec, kind) for kind in _KINDS)
        wrong = {}
        for item in of_pods:
            wrong |= _broken(item, asked, most)
        yield from _told("the pod", wrong)


def _told(what: str, wrong: Mapping[str, str]) -> Iterator[str]:
    for name, why in wrong.items():
        yield f"{what}: {name}: {why}, by a LimitRange"


def _broken(
    item: JsonObject, requests: Mapping[str, int], limits: Mapping[str, int]
) -> dict[str, str]:
    """Return what is wrong with these amounts, in nanos, by resource."""
    wrong: dict[str, str] = {}
    for name, ratio in amounts(item.get("maxLimitRequestRatio")).items():
        asked, most = _rounded(requests.get(name, 0)), _rounded(limits.get(name, 0))
        if not asked or not most or most / asked * 1000 > _rounded(ratio):
            text = item["maxLimitRequestRatio"][name]
            wrong[name] = f"may have a limit of {text} times its request at most"
    for name, most in amounts(item.get("max")).items():
        given = [limits[name], requests.get(name, 0)] if name in limits else None
        if given is None or _rounded(max(given)) > _rounded(most):
            wrong[name] = f"may have {item['max'][name]} at most"
    for name, least in amounts(item.get("min")).items():
        asked = requests.get(name, -_THOUSANDTH)
        if _rounded(min(asked, limits.get(name, asked))) < _rounded(least):
            wrong[name] = f"must request {item['min'][name]} at least"
    return wrong


def _rounded(nano: int) -> int:
    return -(-nano // _THOUSANDTH)


def _text(resource: str, nano: int) -> str:
    return format_quantity(resource, counted(resource, nano))


def _items(limit_range: JsonObject, kind: str) -> Iterator[JsonObject]:
    for item in objects_in(as_object(limit_range.get("spec")).get("limits")):
        if item.get("type") == kind:
            yield item
