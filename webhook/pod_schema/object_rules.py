"""Rules of the API server for objects of a pod's spec whose fields depend on each other.

Source: pkg/apis/core/validation of Kubernetes 1.36. Values of a wrong type are skipped:
webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from webhook.dns_names import LABEL
from webhook.placement.schema.syntax import label_value_fault
from webhook.pod_schema.field_checks import Path, mappings
from webhook.strict import quoted

Rule: TypeAlias = Callable[[Mapping[str, Any]], Iterator[tuple[Path, str]]]

_PORT_NAME: Final = re.compile(rf"(?=.*[a-z])(?!.*--){LABEL}", re.ASCII)
_MAX_PORT_NAME: Final = 15
MAX_PORT: Final = 65535
# The API server's default, in seconds.
_GRACE: Final = 30
# Sysctls of the namespaces that a pod may share with its node (ValidateHostSysctl).
_HOST_SYSCTLS: Final = re.compile(r"(?P<net>net\.)|kernel\.(shm|msg|sem$)|fs\.mqueue\.")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def _pod(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    context = spec.get("securityContext")
    for at, each in _items(context, "sysctls") if isinstance(context, dict) else ():
        shared = _HOST_SYSCTLS.match(str(each.get("name")).replace("/", "."))
        field = "hostNetwork" if shared and shared["net"] else "hostIPC"
        if shared and spec.get(field):
            text = f"cannot be set together with {field}, because it would be the node's"
            yield ("securityContext", *at, "name"), text
    for at, each in _items(spec, "initContainers"):
        for key in (*_PROBES, "lifecycle") if each.get("restartPolicy") != "Always" else ():
            if each.get(key) is not None:
                text = (
                    "is not allowed in an init container without restartPolicy: Always; remove it"
                )
                yield (*at, key), text
    grace = spec.get("terminationGracePeriodSeconds")
    most = grace if isinstance(grace, int) and grace > 0 else _GRACE
    for key in ("initContainers", "containers"):
        for at, each in _items(spec, key):
            for path, text in _container(each, most):
                yield (*at, *path), text


def _container(given: Mapping[str, Any], grace: int) -> Iterator[tuple[Path, str]]:
    stop = (given.get("lifecycle") or {}).get("preStop") if _has(given, "lifecycle") else None
    sleep = stop.get("sleep") if isinstance(stop, dict) else None
    seconds = sleep.get("seconds") if isinstance(sleep, dict) else None
    if isinstance(seconds, int) and seconds > grace:
        path = ("lifecycle", "preStop", "sleep", "seconds")
        yield path, f"{seconds} is above terminationGracePeriodSeconds, {grace}"
    for key in _PROBES:
        probe = given.get(key)
        if not isinstance(probe, dict):
            continue
        if key != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
            yield (key, "successThreshold"), f"must be 1 in a {key}"
        if key == "readinessProbe" and probe.get("terminationGracePeriodSeconds") is not None:
            yield (
                (key, "terminationGracePeriodSeconds"),
                "is not allowed in a readinessProbe; remove it",
            )


def _has(given: Mapping[str, Any], key: str) -> bool:
    return isinstance(given.get(key), dict)


def _port(action: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    port = action.get("port")
    if isinstance(port, bool):
        return
    if isinstance(port, int) and not 1 <= port <= MAX_PORT:
        yield ("port",), f"{port} is not a port: want 1 to {MAX_PORT}"
    if isinstance(port, str) and (why := port_name_fault(port)):
        yield ("port",), why


def port_name_fault(name: str) -> str:
    """Return why a name is not a valid port name; empty if it is one (IANA_SVC_NAME)."""
    if len(name) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(name):
        return ""
    return f"{quoted(name)} is not a port's name: want at most 15 of a-z, 0-9 and single '-'"


def _selector(requirement: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    values = requirement.get("values") or []
    count = len(values) if isinstance(values, list) else 1
    if why := operator_fault(requirement.get("operator"), count):
        yield ("values",), why
    yield from _label_values(requirement)


def operator_fault(operator: object, count: int) -> str:
    """Return why an operator cannot have this number of values; empty if it can."""
    if operator in ("In", "NotIn") and not count:
        return f"{operator} needs one value or more"
    if operator in ("Exists", "DoesNotExist") and count:
        return f"{operator} takes no values; remove them"
    return ""


def _label_values(requirement: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    values = requirement.get("values")
    for at, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str) and (why := label_value_fault(value)):
            yield ("values", at), f"{quoted(value)} is not a label's value: {why}"


def _beside_selector(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for key in ("matchLabelKeys", "mismatchLabelKeys"):
        if given.get(key) and given.get("labelSelector") is None:
            yield (key,), "requires labelSelector; add it"


def _spread(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    yield from _beside_selector(given)
    if given.get("minDomains") is not None and given.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield ("minDomains",), "requires whenUnsatisfiable: DoNotSchedule"


def _items(given: Mapping[str, Any], key: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    return mappings(given.get(key), (key,))


# The rules of each type.
RULES: Final[Mapping[str, Rule]] = {
    "HTTPGetAction": _port,
    "LabelSelectorRequirement": _selector,
    "NodeSelectorRequirement": _label_values,
    "PodAffinityTerm": _beside_selector,
    "PodSpec": _pod,
    "TCPSocketAction": _port,
    "TopologySpreadConstraint": _spread,
}
