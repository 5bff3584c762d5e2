"""Rules of the API server for single values of a pod's spec: tables by type and field.

Source: pkg/apis/core/validation of Kubernetes 1.36. Values of a wrong type are skipped:
webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from webhook.dns_names import is_label, is_subdomain
from webhook.placement.schema.syntax import qualified_name_fault, sysctl_fault
from webhook.pod_schema.field_checks import Fault, Path, fields_of, schema
from webhook.pod_schema.object_rules import RULES, below
from webhook.strict import quoted

_Check: TypeAlias = Callable[[str], str]


def _subdomain(text: str) -> str:
    return "" if is_subdomain(text) else "want a DNS name of a-z, 0-9, '-' and '.'"


def _label(text: str) -> str:
    return "" if is_label(text) else "want at most 63 of a-z, 0-9 and '-'"


def _trimmed(text: str) -> str:
    return "" if text == text.strip() else "has blanks at an end; remove them"


def _one_of(*words: str) -> _Check:
    return lambda text: "" if text in words else f"want one of {', '.join(words)}"


# Checks of a string, or of each string in a list, by type and field. Empty strings are skipped. The
# topologyKey of a spread constraint may be any text.
_TEXTS: Final[Mapping[tuple[str, str], _Check]] = {
    **dict.fromkeys(
        (
            ("LabelSelectorRequirement", "key"),
            ("NodeSelectorRequirement", "key"),
            ("PodAffinityTerm", "matchLabelKeys"),
            ("PodAffinityTerm", "mismatchLabelKeys"),
            ("PodAffinityTerm", "topologyKey"),
            ("PodReadinessGate", "conditionType"),
            ("PodSchedulingGate", "name"),
            ("TopologySpreadConstraint", "matchLabelKeys"),
        ),
        qualified_name_fault,
    ),
    ("LabelSelectorRequirement", "operator"): _one_of("In", "NotIn", "Exists", "DoesNotExist"),
    ("Container", "image"): _trimmed,
    ("Container", "restartPolicy"): _one_of("Always", "Never", "OnFailure"),
    ("PodAffinityTerm", "namespaces"): _label,
    ("PodOS", "name"): _one_of("linux", "windows"),
    ("PodSpec", "hostname"): _label,
    ("PodSpec", "nodeName"): _subdomain,
    ("PodSpec", "priorityClassName"): _subdomain,
    ("PodSpec", "runtimeClassName"): _subdomain,
    ("PodSpec", "serviceAccountName"): _subdomain,
    ("PodSpec", "subdomain"): _label,
    ("Sysctl", "name"): sysctl_fault,
    ("VolumeMount", "subPath"): below,
    ("VolumeMount", "subPathExpr"): below,
}
# Minimum and maximum of a number, or of each in a list; None: no maximum.
_NUMBERS: Final[Mapping[tuple[str, str], tuple[int, int | None]]] = {
    **dict.fromkeys(
        (
            ("PodSecurityContext", "fsGroup"),
            ("PodSecurityContext", "runAsGroup"),
            ("PodSecurityContext", "runAsUser"),
            ("PodSecurityContext", "supplementalGroups"),
            ("SecurityContext", "runAsGroup"),
            ("SecurityContext", "runAsUser"),
        ),
        (0, 2**31 - 1),
    ),
    **dict.fromkeys(
        (
            ("Probe", "failureThreshold"),
            ("Probe", "initialDelaySeconds"),
            ("Probe", "periodSeconds"),
            ("Probe", "successThreshold"),
            ("Probe", "timeoutSeconds"),
            ("SleepAction", "seconds"),
        ),
        (0, None),
    ),
    ("PreferredSchedulingTerm", "weight"): (1, 100),
    ("Probe", "terminationGracePeriodSeconds"): (1, None),
    ("TopologySpreadConstraint", "minDomains"): (1, None),
    ("WeightedPodAffinityTerm", "weight"): (1, 100),
}
# Fields that may not be empty, by type.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMapVolumeSource": ("name",),
    "EnvVar": ("name",),
    "ExecAction": ("command",),
    "LabelSelectorRequirement": ("key", "operator"),
    "NodeSelectorRequirement": ("key", "operator"),
    "PersistentVolumeClaimVolumeSource": ("claimName",),
    "PodAffinityTerm": ("topologyKey",),
    "SecretVolumeSource": ("secretName",),
    "Sysctl": ("name",),
    "VolumeMount": ("mountPath",),
}
# Fields of which exactly one must be set.
_EITHER: Final[Mapping[str, tuple[str, ...]]] = {
    "EnvFromSource": ("configMapRef", "secretRef"),
    "EnvVarSource": (
        "configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef",
    ),
    "LifecycleHandler": ("exec", "httpGet", "sleep", "tcpSocket"),
    "Probe": ("exec", "grpc", "httpGet", "tcpSocket"),
}  # fmt: skip
# Lists of objects that must differ in these fields.
_DISTINCT: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("PodSecurityContext", "sysctls"): ("name",),
    ("PodSpec", "schedulingGates"): ("name",),
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
}
_PREFERENCE: Final = ("PreferredSchedulingTerm", "preference")


def faults(value: Any, kind: str = "PodSpec", path: Path = ()) -> Iterator[Fault]:
    """Yield the faults of a pod's spec, or of another value of a type of the schema."""
    if kind.startswith("[]") and isinstance(value, list):
        for position, child in enumerate(value):
            yield from faults(child, kind[2:], (*path, position))
    elif kind in schema().types and isinstance(value, dict):
        yield from _below(path, _object(value, kind))
        field_kinds = fields_of(kind)
        for key, child in value.items():
            if key in field_kinds and child is not None:
                yield from _below((*path, key), _field(child, (kind, key)))
                child_faults = faults(child, field_kinds[key], (*path, key))
                yield from (
                    map(_of_preference, child_faults)
                    if (kind, key) == _PREFERENCE
                    else child_faults
                )


def _of_preference(fault: Fault) -> Fault:
    """Return a fault of a preference for nodes: of a label's value the API server only warns.

    Source: ValidatePreferredSchedulingTerms, which allows invalid label values.
    """
    if (*fault.path[-4:-3], *fault.path[-2:-1]) != ("matchExpressions", "values"):
        return fault
    text = f"{fault.message}; the API server takes it with a warning, and no node has it"
    return fault._replace(message=text, severity="warning")


def _below(path: Path, inner_faults: Iterator[Fault]) -> Iterator[Fault]:
    return (fault._replace(path=(*path, *fault.path)) for fault in inner_faults)


def _field(value: Any, field: tuple[str, str]) -> Iterator[Fault]:
    """Yield the faults of a field's value, paths relative to it."""
    limits, check = _NUMBERS.get(field), _TEXTS.get(field)
    if limits or check:
        listed = isinstance(value, list)
        for at, element in enumerate(value) if listed else ((0, value),):
            path = (at,) if listed else ()
            if limits and (why := _beyond(element, *limits)):
                yield Fault(path, why)
            if check and isinstance(element, str) and element and (why := check(element)):
                yield Fault(path, f"{quoted(element)}: {why}")
    if keys := _DISTINCT.get(field):
        first: dict[tuple[str, ...], int] = {}
        for at, element in enumerate(value if isinstance(value, list) else ()):
            key_values = (
                tuple(str(element.get(key)) for key in keys) if isinstance(element, dict) else ()
            )
            if key_values and first.setdefault(key_values, at) != at:
                used = f"{', '.join(key_values)} is already used by [{first[key_values]}]"
                yield Fault((at, keys[0]), f"{used}; keep one")


def _beyond(value: Any, least: int, most: int | None) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    if value < least or (most is not None and value > most):
        return f"{value} is not {least} to {most}" if most else f"{value} is below {least}"
    return ""


def _object(value: Mapping[str, Any], kind: str) -> Iterator[Fault]:
    for name in _NEEDED.get(kind, ()):
        # field_checks reports a missing field that the schema requires.
        absent = value.get(name) is None
        if value.get(name) in ("", []) or (absent and f"{name}!" not in schema().types[kind]):
            yield Fault((name,), "is required")
    if either := _EITHER.get(kind):
        given = [name for name in either if value.get(name) is not None]
        if len(given) > 1:
            yield Fault((given[1],), f"{given[0]} is set too; keep one")
        elif not given and value.keys() <= fields_of(kind).keys():
            yield Fault((), f"want one of {', '.join(either)}")
    if rule := RULES.get(kind):
        yield from rule(value)
