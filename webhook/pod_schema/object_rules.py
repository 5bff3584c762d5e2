"""Rules of the API server for objects of a pod's spec whose fields depend on each other.

Source: pkg/apis/core/validation of Kubernetes 1.36, among it ValidateTolerations,
validateNodeSelectorTerm, validateTopologySpreadConstraints, validateSeccompProfileField,
ValidateAppArmorProfileField and ValidatePodSpec. Values of a wrong type are skipped:
webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from webhook.dns_names import LABEL, is_subdomain
from webhook.placement.fields import BY_NAME
from webhook.placement.schema.scheduling import selector_keys
from webhook.placement.schema.syntax import label_value_fault, qualified_name_fault
from webhook.pod_schema.field_checks import Fault, Path, mappings
from webhook.strict import quoted

_Given: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[_Given], Iterator[Fault]]

_PORT_NAME: Final = re.compile(rf"(?=.*[a-z])(?!.*--){LABEL}", re.ASCII)
_MAX_PORT_NAME: Final = 15
MAX_PORT: Final = 65535
_LONGEST_DEADLINE: Final = 2**31 - 1
# The API server's default, in seconds.
_GRACE: Final = 30
# Sysctls of the namespaces that a pod may share with its node (ValidateHostSysctl).
_HOST_SYSCTLS: Final = re.compile(r"(?P<net>net\.)|kernel\.(shm|msg|sem$)|fs\.mqueue\.")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_SYSTEMS: Final = ("linux", "windows")
# The only field in matchFields (nodeFieldSelectorValidators, pkg/apis/core/validation).
_NODE_NAME: Final = "metadata.name"
# Bytes: PATH_MAX without the terminating null.
_LONGEST_PROFILE: Final = 4095
_RELATIVE: Final = "want a path that does not begin with / and has no .. in it"


def label_faults(given: Any, path: Path) -> Iterator[Fault]:
    """Yield the faults in keys and values of labels, or of a nodeSelector."""
    for key, value in given.items() if isinstance(given, dict) else ():
        if why := qualified_name_fault(str(key)):
            text = f"{quoted(str(key))} is not a label's key: {why}"
            yield Fault((*path, key), text, at_key=True)
        if isinstance(value, str) and (why := label_value_fault(value)):
            yield Fault((*path, key), f"{quoted(value)} is not a label's value: {why}")


def _pod(spec: _Given) -> Iterator[Fault]:
    yield from label_faults(spec.get("nodeSelector"), ("nodeSelector",))
    if spec.get("containers") == []:
        yield Fault(("containers",), "is empty: want one container or more")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _LONGEST_DEADLINE:
        yield Fault(("activeDeadlineSeconds",), f"{deadline} is not 1 to {_LONGEST_DEADLINE}")
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        text = (
            f"{grace} is negative, and Kubernetes uses 1; write the number of seconds that you want"
        )
        yield Fault(("terminationGracePeriodSeconds",), text, "warning")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set together with schedulingGates; remove one of the two"
        yield Fault(("nodeName",), text)
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        text = "cannot be set together with hostPID; remove one of the two"
        yield Fault(("shareProcessNamespace",), text)
    yield from _of_context(spec)
    for at, container in _items(spec, "initContainers"):
        for key in (*_PROBES, "lifecycle") if container.get("restartPolicy") != "Always" else ():
            if container.get(key) is not None:
                text = (
                    "is not allowed in an init container without restartPolicy: Always; remove it"
                )
                yield Fault((*at, key), text)
    yield from _ports_of_the_node(spec)
    most = _GRACE if not isinstance(grace, int) else grace if grace >= 0 else 1
    for key in ("initContainers", "containers"):
        for at, container in _items(spec, key):
            for fault in _container(container, most):
                yield fault._replace(path=(*at, *fault.path))


def _ports_of_the_node(spec: _Given) -> Iterator[Fault]:
    """Yield hostPorts unlike their containerPort; the API server sets those that are left out.

    Source: validatePodHostNetworkDeps in pkg/apis/core/validation, of containers alone.
    """
    for container_path, container in (
        _items(spec, "containers") if spec.get("hostNetwork") is True else ()
    ):
        for at, port in _items(container, "ports"):
            number, wanted = port.get("hostPort"), port.get("containerPort")
            if number and number != wanted:
                text = f"{number} is not its containerPort, {wanted}, as hostNetwork requires"
                yield Fault((*container_path, *at, "hostPort"), text)


def _of_context(spec: _Given) -> Iterator[Fault]:
    context = spec.get("securityContext")
    if not isinstance(context, dict):
        return
    for at, sysctl in _items(context, "sysctls"):
        shared = _HOST_SYSCTLS.match(str(sysctl.get("name")).replace("/", "."))
        field = "hostNetwork" if shared and shared["net"] else "hostIPC"
        if shared and spec.get(field):
            text = f"cannot be set together with {field}, because it would be the node's"
            yield Fault(("securityContext", *at, "name"), text)
    system = (spec.get("os") or {}).get("name") if isinstance(spec.get("os"), dict) else None
    for key, value in context.items():
        other = BY_NAME["securityContext"].system_of(str(key))
        if value is not None and system in _SYSTEMS and other not in ("", system):
            yield Fault(("securityContext", key), f"is for {other}, and os.name is {system}")


def _container(given: _Given, grace: int) -> Iterator[Fault]:
    lifecycle = given.get("lifecycle")
    stop = lifecycle.get("preStop") if isinstance(lifecycle, dict) else None
    sleep = stop.get("sleep") if isinstance(stop, dict) else None
    seconds = sleep.get("seconds") if isinstance(sleep, dict) else None
    if isinstance(seconds, int) and seconds > grace:
        path = ("lifecycle", "preStop", "sleep", "seconds")
        yield Fault(path, f"{seconds} is above terminationGracePeriodSeconds, {grace}")
    for key in _PROBES:
        probe = given.get(key)
        if not isinstance(probe, dict):
            continue
        if key != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
            yield Fault((key, "successThreshold"), f"must be 1 in a {key}")
        if key == "readinessProbe" and probe.get("terminationGracePeriodSeconds") is not None:
            text = "is not allowed in a readinessProbe; remove it"
            yield Fault((key, "terminationGracePeriodSeconds"), text)


def _ports(container: _Given) -> Iterator[Fault]:
    first: dict[str, Path] = {}
    for at, port in _items(container, "ports"):
        for key, least in (("containerPort", 1), ("hostPort", 0)):
            number = port.get(key)
            # A hostPort of 0 counts as unset.
            if isinstance(number, int) and not least <= number <= MAX_PORT:
                yield Fault((*at, key), f"{number} is not a port: want 1 to {MAX_PORT}")
        name = port.get("name")
        if not isinstance(name, str) or not name:
            continue
        if why := _port_name_fault(name):
            yield Fault((*at, "name"), why)
        elif first.setdefault(name, at) is not at:
            text = f"{quoted(name)} is already used by ports[{first[name][-1]}]; rename one"
            yield Fault((*at, "name"), text)


def _port(action: _Given) -> Iterator[Fault]:
    port = action.get("port")
    if isinstance(port, bool):
        return
    if isinstance(port, int) and not 1 <= port <= MAX_PORT:
        yield Fault(("port",), f"{port} is not a port: want 1 to {MAX_PORT}")
    if isinstance(port, str) and (why := _port_name_fault(port)):
        yield Fault(("port",), why)


def _port_name_fault(name: str) -> str:
    """Return why a name is not a valid port name; empty if it is one (IANA_SVC_NAME)."""
    if len(name) <= _MAX_PORT_NAME and _PORT_NAME.fullmatch(name):
        return ""
    return f"{quoted(name)} is not a port's name: want at most 15 of a-z, 0-9 and single '-'"


def _variable(variable: _Given) -> Iterator[Fault]:
    if variable.get("value") and variable.get("valueFrom"):
        yield Fault(("valueFrom",), "there is a value already; keep one of the two")


def _toleration(toleration: _Given) -> Iterator[Fault]:
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if isinstance(key, str) and key and (why := qualified_name_fault(key)):
        yield Fault(("key",), f"{quoted(key)} is not a taint's key: {why}")
    if not key and operator != "Exists":
        yield Fault(("operator",), "without a key it must be Exists")
    value = toleration.get("value")
    if operator == "Exists" and value:
        yield Fault(("value",), "requires operator Equal; remove it, or the operator Exists")
    if operator == "Equal" and isinstance(value, str) and (why := label_value_fault(value)):
        yield Fault(("value",), f"{quoted(value)} is not a taint's value: {why}")
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield Fault(("tolerationSeconds",), "requires effect NoExecute: add it")


def _terms(required: _Given) -> Iterator[Fault]:
    if required.get("nodeSelectorTerms") in (None, []):
        yield Fault(("nodeSelectorTerms",), "is empty: want one term or more")


def _fields_of_nodes(term: _Given) -> Iterator[Fault]:
    for at, requirement in _items(term, "matchFields"):
        key, operator, values = (requirement.get(name) for name in ("key", "operator", "values"))
        if isinstance(key, str) and key and key != _NODE_NAME:
            text = f"{quoted(key)} is not a field by which nodes are chosen: want {_NODE_NAME}"
            yield Fault((*at, "key"), text)
        if operator in ("Exists", "DoesNotExist", "Gt", "Lt"):
            text = f"{operator} is not allowed in matchFields: want In or NotIn"
            yield Fault((*at, "operator"), text)
        elif isinstance(values, list) and len(values) > 1:
            text = f"{operator} takes exactly one name in matchFields, not {len(values)}"
            yield Fault((*at, "values"), text)


def _label_selector(selector: _Given) -> Iterator[Fault]:
    yield from label_faults(selector.get("matchLabels"), ("matchLabels",))


def _expression(expression: _Given) -> Iterator[Fault]:
    """Yield the faults of an expression of a selector, of labels or of nodes."""
    operator, values = expression.get("operator"), expression.get("values") or []
    count = len(values) if isinstance(values, list) else 1
    if operator in ("In", "NotIn") and not count:
        yield Fault(("values",), f"{operator} needs one value or more")
    if operator in ("Exists", "DoesNotExist") and count:
        yield Fault(("values",), f"{operator} takes no values; remove them")
    if operator in ("Gt", "Lt") and count != 1:
        yield Fault(("values",), f"{operator} needs exactly one value, not {count}")
    for at, value in enumerate(values if isinstance(values, list) else ()):
        if expression.get("key") == _NODE_NAME:
            if isinstance(value, str) and not is_subdomain(value):
                yield Fault(("values", at), f"{quoted(value)} is not the name of a node")
        elif isinstance(value, str) and (why := label_value_fault(value)):
            yield Fault(("values", at), f"{quoted(value)} is not a label's value: {why}")


def _beside_selector(given: _Given) -> Iterator[Fault]:
    for key in ("matchLabelKeys", "mismatchLabelKeys"):
        if given.get(key) and given.get("labelSelector") is None:
            yield Fault((key,), "requires labelSelector; add it")
    matched, mismatched = given.get("matchLabelKeys"), given.get("mismatchLabelKeys")
    for at, key in enumerate(mismatched if isinstance(mismatched, list) else ()):
        if isinstance(matched, list) and key in matched:
            yield Fault(("mismatchLabelKeys", at), f"{quoted(str(key))} is also in matchLabelKeys")


def merged_key_faults(spec: _Given, labels: _Given) -> Iterator[Fault]:
    """Yield keys of matchLabelKeys that the selector beside them has too, and the pod as a label.

    The API server merges each into the selector at the pod's creation, not in a workload's template
    (applyMatchLabelKeysAndMismatchLabelKeys of pkg/registry/core/pod/strategy.go).
    """
    terms = [*_items(spec, "topologySpreadConstraints")]
    affinity = spec.get("affinity")
    rules = affinity if isinstance(affinity, dict) else {}
    for kind in ("podAffinity", "podAntiAffinity"):
        of_kind = rules.get(kind)
        for key, value in of_kind.items() if isinstance(of_kind, dict) else ():
            for at, entry in mappings(value, ("affinity", kind, key)):
                inner = entry.get("podAffinityTerm")
                if isinstance(inner, dict):
                    terms.append(((*at, "podAffinityTerm"), inner))
                else:
                    terms.append((at, entry))
    for at, term in terms:
        written, selected = term.get("matchLabelKeys"), selector_keys(term.get("labelSelector"))
        keys = written if isinstance(written, list) else []
        for index, key in enumerate(keys):
            if isinstance(key, str) and key in labels and key in (*selected, *keys[:index]):
                twice = "is in labelSelector too" if key in selected else "is here twice"
                yield Fault((*at, "matchLabelKeys", index), f"{quoted(key)} {twice}")


def _spread(given: _Given) -> Iterator[Fault]:
    yield from _beside_selector(given)
    if given.get("minDomains") is not None and given.get("whenUnsatisfiable") == "ScheduleAnyway":
        yield Fault(("minDomains",), "requires whenUnsatisfiable: DoNotSchedule")
    skew = given.get("maxSkew")
    if isinstance(skew, int) and skew < 1:
        yield Fault(("maxSkew",), f"{skew} is too small: want 1 or more")
    if given.get("topologyKey") == "":
        yield Fault(("topologyKey",), "is empty: want the key of a label of nodes")


def below(text: str) -> str:
    """Return why a path leads out of its folder; empty if not (validateLocalDescendingPath)."""
    if text.startswith("/"):
        return "want a path that does not begin with /"
    return "want a path without .." if ".." in text.split("/") else ""


def _profile(given: _Given, fault: Callable[[str], str]) -> Iterator[Fault]:
    profile = given.get("localhostProfile")
    if given.get("type") == "Localhost":
        if not profile:
            yield Fault(("localhostProfile",), "type Localhost needs it")
        elif isinstance(profile, str) and (why := fault(profile)):
            yield Fault(("localhostProfile",), why)
    elif isinstance(given.get("type"), str) and profile is not None:
        yield Fault(("localhostProfile",), "is valid with type Localhost only; remove it")


def _seccomp_fault(profile: str) -> str:
    return f"{quoted(profile)} is not a profile: {_RELATIVE}" if below(profile) else ""


def _app_armor_fault(profile: str) -> str:
    if profile != profile.strip():
        return f"{quoted(profile)} begins or ends with blanks; remove them"
    if (length := len(profile.encode())) > _LONGEST_PROFILE:
        return f"is {length} bytes long; want at most {_LONGEST_PROFILE}"
    return ""


def _volume(volume: _Given) -> Iterator[Fault]:
    given = [key for key, value in volume.items() if key != "name" and value is not None]
    if len(given) > 1:
        yield Fault((given[1],), f"a volume is one of {', '.join(given)}; keep one")


def _items(given: _Given, key: str) -> Iterator[tuple[Path, _Given]]:
    return mappings(given.get(key), (key,))


# The rules of each type.
RULES: Final[Mapping[str, Rule]] = {
    "AppArmorProfile": partial(_profile, fault=_app_armor_fault),
    "Container": _ports,
    "EnvVar": _variable,
    "HTTPGetAction": _port,
    "LabelSelector": _label_selector,
    "LabelSelectorRequirement": _expression,
    "NodeSelector": _terms,
    "NodeSelectorRequirement": _expression,
    "NodeSelectorTerm": _fields_of_nodes,
    "PodAffinityTerm": _beside_selector,
    "PodSpec": _pod,
    "SeccompProfile": partial(_profile, fault=_seccomp_fault),
    "TCPSocketAction": _port,
    "Toleration": _toleration,
    "TopologySpreadConstraint": _spread,
    "Volume": _volume,
}
