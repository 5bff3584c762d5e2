"""Rules of the API server for single values of a pod's spec: tables by type and field.

Source: pkg/apis/core/validation of Kubernetes 1.36. Values of a wrong type are skipped:
webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from webhook.dns_names import is_label, is_subdomain
from webhook.placement.schema.syntax import sysctl_fault
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


# Checks of a string, or of each string in a list, by type and field. Empty strings are skipped.
_TEXTS: Final[Mapping[tuple[str, str], _Check]] = {
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
# Minimum and maximum of numbers; None: no maximum.
_NUMBERS: Final[Mapping[tuple[str, str], tuple[int, int | None]]] = {
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
    "PersistentVolumeClaimVolumeSource": ("claimName",),
    "PodAffinityTerm": ("topologyKey",),
    "SecretVolumeSource": ("secretName",),
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
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
}


def faults(value: Any, kind: str = "PodSpec", path: Path = ()) -> Iterator[Fault]:
    """Yield the faults of a pod's spec, or of another value of a type of the schema."""
    if kind.startswith("[]") and isinstance(value, list):
        for position, each in enumerate(value):
            yield from faults(each, kind[2:], (*path, position))
    elif kind in schema().types and isinstance(value, dict):
        yield from _below(path, _object(value, kind))
        known = fields_of(kind)
        for key, each in value.items():
            if key in known and each is not None:
                yield from _below((*path, key), _field(each, (kind, key)))
                yield from faults(each, known[key], (*path, key))


def _below(path: Path, found: Iterator[Fault]) -> Iterator[Fault]:
    return (each._replace(path=(*path, *each.path)) for each in found)


def _field(value: Any, field: tuple[str, str]) -> Iterator[Fault]:
    """Yield the faults of a field's value, paths relative to it."""
    if field in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        least, most = _NUMBERS[field]
        if value < least or (most is not None and value > most):
            text = f"{value} is not {least} to {most}" if most else f"{value} is below {least}"
            yield Fault((), text)
    if check := _TEXTS.get(field):
        texts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, text in texts:
            if isinstance(text, str) and text and (why := check(text)):
                yield Fault(() if at is None else (at,), f"{quoted(text)}: {why}")
    if keys := _DISTINCT.get(field):
        first: dict[tuple[str, ...], int] = {}
        for at, each in enumerate(value if isinstance(value, list) else ()):
            key_values = tuple(str(each.get(key)) for key in keys) if isinstance(each, dict) else ()
            if key_values and first.setdefault(key_values, at) != at:
                used = f"{', '.join(key_values)} is already used by [{first[key_values]}]"
                yield Fault((at, keys[0]), f"{used}; keep one")


def _object(value: Mapping[str, Any], kind: str) -> Iterator[Fault]:
    for name in _NEEDED.get(kind, ()):
        # field_checks reports a missing field that the schema requires.
        absent = value.get(name) is None
        if value.get(name) in ("", []) or (absent and f"{name}!" not in schema().types[kind]):
            yield Fault((name,), "is required")
    if either := _EITHER.get(kind):
        given = [each for each in either if value.get(each) is not None]
        if len(given) > 1:
            yield Fault((given[1],), f"{given[0]} is set too; keep one")
        elif not given and value.keys() <= fields_of(kind).keys():
            yield Fault((), f"want one of {', '.join(either)}")
    if rule := RULES.get(kind):
        yield from rule(value)
