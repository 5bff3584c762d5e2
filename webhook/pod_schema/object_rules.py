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
from webhook.strict import guess, quoted

Rule: TypeAlias = Callable[[Mapping[str, Any]], Iterator[tuple[Path, str]]]

_PORT_NAME: Final = re.compile(rf"(?=.*[a-z])(?!.*--){LABEL}", re.ASCII)
_MAX_PORT_NAME: Final = 15
MAX_PORT: Final = 65535
_MAX_NAMESERVERS: Final = 3
# The API server's default, in seconds.
_GRACE: Final = 30
_OWN_PATHS: Final = ("metadata.name", "metadata.namespace", "metadata.uid")
_ENV_PATHS: Final = (
    *_OWN_PATHS, "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
# Sysctls of the namespaces that a pod may share with its node (ValidateHostSysctl).
_HOST_SYSCTLS: Final = re.compile(r"(?P<net>net\.)|kernel\.(shm|msg|sem$)|fs\.mqueue\.")
_MAPS: Final = ("metadata.labels", "metadata.annotations")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def _pod(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if spec.get("ephemeralContainers"):
        yield ("ephemeralContainers",), "cannot be set when a pod is created; remove it"
    config = spec.get("dnsConfig")
    servers = config.get("nameservers") if isinstance(config, dict) else None
    if spec.get("dnsPolicy") == "None" and not servers:
        yield ("dnsPolicy",), "None requires dnsConfig.nameservers; add one"
    if spec.get("hostUsers") is False and spec.get("hostNetwork"):
        yield (
            ("hostNetwork",),
            "cannot be set together with hostUsers: false; remove one of the two",
        )
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
    claims = {str(each.get("name")) for _, each in _items(spec, "resourceClaims")}
    blocks = {
        str(each.get("name"))
        for _, each in _items(spec, "volumes")
        if not {"persistentVolumeClaim", "ephemeral"} & each.keys() and len(each) > 1
    }
    grace = spec.get("terminationGracePeriodSeconds")
    most = grace if isinstance(grace, int) and grace > 0 else _GRACE
    for key in ("initContainers", "containers"):
        for at, each in _items(spec, key):
            for path, text in _container(each, claims, blocks, most):
                yield (*at, *path), text
    yield from _host_ports(spec)


def _container(
    given: Mapping[str, Any], claims: set[str], blocks: set[str], grace: int
) -> Iterator[tuple[Path, str]]:
    resources = given.get("resources")
    for at, claim in _items(resources if isinstance(resources, dict) else {}, "claims"):
        if isinstance(name := claim.get("name"), str) and name not in claims:
            yield ("resources", *at, "name"), f"the pod has no resourceClaim {name!r}"
    for at, device in _items(given, "volumeDevices"):
        if isinstance(name := device.get("name"), str) and name in blocks:
            text = (
                f"volume {quoted(name)} is neither a persistentVolumeClaim nor an ephemeral volume"
            )
            yield (*at, "name"), text
    context = given.get("securityContext")
    privileged = context.get("privileged") if isinstance(context, dict) else None
    for at, mount in _items(given, "volumeMounts"):
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            text = "Bidirectional requires a privileged container"
            yield (*at, "mountPropagation"), text
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


def _host_ports(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Check that no host port is used twice, and that it is the containerPort with hostNetwork."""
    first_paths: dict[tuple[str, ...], Path] = {}
    of_node = spec.get("hostNetwork") is True
    for at, container in _items(spec, "containers"):
        for number, port in _items(container, "ports"):
            path = (*at, *number, "hostPort")
            own, inner = port.get("hostPort"), port.get("containerPort")
            if of_node and own and own != inner:
                yield path, f"must be the containerPort, {inner}, with hostNetwork; found {own}"
            key = (str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""), str(own))
            if own and first_paths.setdefault(key, path) != path:
                first = first_paths[key]
                text = (
                    f"{own} is already used by containers[{first[1]}].ports[{first[3]}]; keep one"
                )
                yield path, text


def _mount(mount: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if mount.get("subPath") and mount.get("subPathExpr"):
        yield ("subPathExpr",), "subPath is set too; keep one of the two"
    recursive = mount.get("recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible") and mount.get("readOnly") is not True:
        yield ("recursiveReadOnly",), "requires readOnly: true; add it"


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


def _node_term(term: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for at, each in _items(term, "matchFields"):
        if isinstance(key := each.get("key"), str) and key != "metadata.name":
            yield (*at, "key"), f"{quoted(key)} is not metadata.name"


def _beside_selector(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for key in ("matchLabelKeys", "mismatchLabelKeys"):
        if given.get(key) and given.get("labelSelector") is None:
            yield (key,), "requires labelSelector; add it"


def _spread(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    yield from _beside_selector(given)
    if given.get("minDomains") is not None and given.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield ("minDomains",), "requires whenUnsatisfiable: DoNotSchedule"


def _field_path(given: Mapping[str, Any], paths: tuple[str, ...], *, whole: bool) -> str:
    """Return why a fieldRef is invalid; empty if it is not. `whole`: a whole map is allowed."""
    reference = given.get("fieldRef")
    path = reference.get("fieldPath") if isinstance(reference, dict) else None
    if not isinstance(path, str) or not path or path in paths or (whole and path in _MAPS):
        return ""
    if path.endswith("']") and path.partition("['")[0] in _MAPS:
        return ""
    cure = f"; add the key, as in {path}['KEY']" if path in _MAPS else guess(path, paths)
    return f"{quoted(path)} is not one of {', '.join((*paths, *_MAPS))}{cure}"


def _variable_source(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if why := _field_path(given, _ENV_PATHS, whole=False):
        yield ("fieldRef", "fieldPath"), why


def _downward(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if why := _field_path(given, _OWN_PATHS, whole=True):
        yield ("fieldRef", "fieldPath"), why


def _name_servers(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    servers = given.get("nameservers")
    if isinstance(servers, list) and len(servers) > _MAX_NAMESERVERS:
        yield ("nameservers",), f"{len(servers)} are too many: want at most {_MAX_NAMESERVERS}"


def _claim(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    resources = given.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    if not isinstance(requests, dict) or requests.get("storage") is None:
        yield ("resources",), "requires requests.storage, the size of the volume"


def _empty_dir(given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    limit = given.get("sizeLimit")
    if str(limit).startswith("-"):
        yield ("sizeLimit",), f"{limit} is negative"


def _items(given: Mapping[str, Any], key: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    return mappings(given.get(key), (key,))


# The rules of each type.
RULES: Final[Mapping[str, Rule]] = {
    "DownwardAPIVolumeFile": _downward,
    "EmptyDirVolumeSource": _empty_dir,
    "EnvVarSource": _variable_source,
    "HTTPGetAction": _port,
    "LabelSelectorRequirement": _selector,
    "NodeSelectorRequirement": _label_values,
    "NodeSelectorTerm": _node_term,
    "PersistentVolumeClaimSpec": _claim,
    "PodAffinityTerm": _beside_selector,
    "PodDNSConfig": _name_servers,
    "PodSpec": _pod,
    "TCPSocketAction": _port,
    "TopologySpreadConstraint": _spread,
    "VolumeMount": _mount,
}
