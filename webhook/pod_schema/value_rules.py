"""Rules of the API server for single values of a pod's spec: tables by type and field.

Source: pkg/apis/core/validation of Kubernetes 1.36. What has another shape than a pod's is passed
over: webhook.pod_schema.field_checks names it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from webhook.dns_names import is_label, is_subdomain
from webhook.placement.schema.syntax import qualified_name_fault, sysctl_fault
from webhook.pod_schema.field_checks import Fault, Path, fields_of, schema
from webhook.pod_schema.object_rules import RULES
from webhook.strict import quoted

_Check: TypeAlias = Callable[[str], str]

_LONGEST_KEY: Final = 253
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_MAX_MODE: Final = 0o777
_DIVIDED: Final = re.compile(
    r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)", re.ASCII
)


def _subdomain(text: str) -> str:
    return "" if is_subdomain(text) else "want a DNS name of a-z, 0-9, '-' and '.'"


def _label(text: str) -> str:
    return "" if is_label(text) else "want at most 63 of a-z, 0-9 and '-'"


def _variable(text: str) -> str:
    plain = text.isascii() and text.isprintable() and "=" not in text
    return "" if plain else "want printable ASCII without '='"


def _config_key(text: str) -> str:
    fits = len(text) <= _LONGEST_KEY and _KEY.fullmatch(text) and text != "."
    return _not_reserved(text) if fits else "want letters, digits, '-', '_' and '.'"


def _not_reserved(text: str) -> str:
    return "must not begin with .." if text.startswith("..") else ""


def below(text: str) -> str:
    """Why a path leads out of the folder that it is below (validateLocalDescendingPath)."""
    return "want a path that does not begin with /" if text.startswith("/") else _no_step_up(text)


def _key_path(text: str) -> str:
    return below(text) or _not_reserved(text)


def _no_step_up(text: str) -> str:
    return "want a path without .." if ".." in text.split("/") else ""


def _absolute(text: str) -> str:
    return "" if text.startswith("/") else "want a path that begins with /"


def _address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return "want an IP address"
    return ""


def _trimmed(text: str) -> str:
    return "" if text == text.strip() else "has blanks at an end; remove them"


def _divided(text: str) -> str:
    if _DIVIDED.fullmatch(text):
        return ""
    return "want limits. or requests., and cpu, memory, ephemeral-storage or hugepages-SIZE"


def _one_of(*words: str) -> _Check:
    return lambda text: "" if text in words else f"want one of {', '.join(words)}"


# What is wrong with a text, or with each of a list, by type and field. An empty one is left out.
_TEXTS: Final[Mapping[tuple[str, str], _Check]] = {
    ("Container", "image"): _trimmed,
    ("Container", "restartPolicy"): _one_of("Always", "Never", "OnFailure"),
    ("ContainerResizePolicy", "resourceName"): _one_of("cpu", "memory"),
    ("ConfigMapKeySelector", "key"): _config_key,
    ("ConfigMapKeySelector", "name"): _subdomain,
    ("DownwardAPIVolumeFile", "path"): _key_path,
    ("EnvFromSource", "prefix"): _variable,
    ("EnvVar", "name"): _variable,
    ("HostAlias", "hostnames"): _subdomain,
    ("HostAlias", "ip"): _address,
    ("HostPathVolumeSource", "path"): _no_step_up,
    ("KeyToPath", "path"): _key_path,
    ("NFSVolumeSource", "path"): _absolute,
    ("PodAffinityTerm", "namespaces"): _label,
    ("PodDNSConfig", "nameservers"): _address,
    ("PodOS", "name"): _one_of("linux", "windows"),
    ("PodReadinessGate", "conditionType"): qualified_name_fault,
    ("PodSchedulingGate", "name"): qualified_name_fault,
    ("PodSpec", "hostname"): _label,
    ("PodSpec", "hostnameOverride"): _subdomain,
    ("PodSpec", "nodeName"): _subdomain,
    ("PodSpec", "priorityClassName"): _subdomain,
    ("PodSpec", "runtimeClassName"): _subdomain,
    ("PodSpec", "serviceAccountName"): _subdomain,
    ("PodSpec", "subdomain"): _label,
    ("ResourceFieldSelector", "resource"): _divided,
    ("SecretKeySelector", "key"): _config_key,
    ("SecretKeySelector", "name"): _subdomain,
    ("Sysctl", "name"): sysctl_fault,
    ("VolumeMount", "subPath"): below,
    ("VolumeMount", "subPathExpr"): below,
}
# The least and the most that a number may be.
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
    **dict.fromkeys(
        (
            ("ConfigMapVolumeSource", "defaultMode"),
            ("DownwardAPIVolumeFile", "mode"),
            ("DownwardAPIVolumeSource", "defaultMode"),
            ("KeyToPath", "mode"),
            ("ProjectedVolumeSource", "defaultMode"),
            ("SecretVolumeSource", "defaultMode"),
        ),
        (0, _MAX_MODE),
    ),
    ("PreferredSchedulingTerm", "weight"): (1, 100),
    ("Probe", "terminationGracePeriodSeconds"): (1, None),
    ("ServiceAccountTokenProjection", "expirationSeconds"): (600, None),
    ("TopologySpreadConstraint", "minDomains"): (1, None),
    ("WeightedPodAffinityTerm", "weight"): (1, 100),
}
# Fields that may not be empty, by type.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMapEnvSource": ("name",),
    "ConfigMapKeySelector": ("key", "name"),
    "ConfigMapProjection": ("name",),
    "ConfigMapVolumeSource": ("name",),
    "EnvVar": ("name",),
    "EphemeralVolumeSource": ("volumeClaimTemplate",),
    "ExecAction": ("command",),
    "GitRepoVolumeSource": ("repository",),
    "HostPathVolumeSource": ("path",),
    "ImageVolumeSource": ("reference",),
    "KeyToPath": ("key", "path"),
    "NFSVolumeSource": ("path", "server"),
    "PersistentVolumeClaimVolumeSource": ("claimName",),
    "PodAffinityTerm": ("topologyKey",),
    "SecretEnvSource": ("name",),
    "SecretKeySelector": ("key", "name"),
    "SecretProjection": ("name",),
    "SecretVolumeSource": ("secretName",),
    "VolumeDevice": ("devicePath",),
    "VolumeMount": ("mountPath",),
}
# Fields of which an object has exactly one.
_EITHER: Final[Mapping[str, tuple[str, ...]]] = {
    "EnvFromSource": ("configMapRef", "secretRef"),
    "EnvVarSource": (
        "configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef",
    ),
    "LifecycleHandler": ("exec", "httpGet", "sleep", "tcpSocket"),
    "PodResourceClaim": ("resourceClaimName", "resourceClaimTemplateName"),
    "Probe": ("exec", "grpc", "httpGet", "tcpSocket"),
}  # fmt: skip
# Lists of objects of which no two are alike in these fields.
_DISTINCT: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("PodSpec", "resourceClaims"): ("name",),
    ("PodSpec", "schedulingGates"): ("name",),
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
}


def faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong in a pod's spec, the paths below it."""
    yield from _walk(spec, "PodSpec", ())


def _walk(value: Any, kind: str, path: Path) -> Iterator[Fault]:
    if kind.startswith("[]") and isinstance(value, list):
        for position, each in enumerate(value):
            yield from _walk(each, kind[2:], (*path, position))
    elif kind in schema().types and isinstance(value, dict):
        yield from (Fault((*path, *at), text) for at, text in _object(value, kind))
        known = fields_of(kind)
        for key, each in value.items():
            if key in known and each is not None:
                found = _field(each, (kind, key))
                yield from (Fault((*path, key, *at), text) for at, text in found)
                yield from _walk(each, known[key], (*path, key))


def _field(value: Any, field: tuple[str, str]) -> Iterator[tuple[Path, str]]:
    """What is wrong with the value of a field, the paths below it."""
    if field in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        least, most = _NUMBERS[field]
        if value < least or (most is not None and value > most):
            yield (), f"{value} is not {least} to {most}" if most else f"{value} is below {least}"
    if check := _TEXTS.get(field):
        texts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, text in texts:
            if isinstance(text, str) and text and (why := check(text)):
                yield () if at is None else (at,), f"{quoted(text)}: {why}"
    if keys := _DISTINCT.get(field):
        first: dict[tuple[str, ...], int] = {}
        for at, each in enumerate(value if isinstance(value, list) else ()):
            key_values = tuple(str(each.get(key)) for key in keys) if isinstance(each, dict) else ()
            if key_values and first.setdefault(key_values, at) != at:
                yield (
                    (at, keys[0]),
                    f"{', '.join(key_values)} is already used by [{first[key_values]}]; keep one",
                )


def _object(value: Mapping[str, Any], kind: str) -> Iterator[tuple[Path, str]]:
    """What is wrong with an object of this type, the paths below it."""
    for name in _NEEDED.get(kind, ()):
        # One that is absent and that the schema itself wants is named by it.
        absent = value.get(name) is None
        if value.get(name) in ("", []) or (absent and f"{name}!" not in schema().types[kind]):
            yield (name,), "is required"
    if either := _EITHER.get(kind):
        given = [each for each in either if value.get(each) is not None]
        if len(given) > 1:
            yield (given[1],), f"{given[0]} is set too; keep one"
        elif not given and value.keys() <= fields_of(kind).keys():
            yield (), f"want one of {', '.join(either)}"
    if rule := RULES.get(kind):
        yield from rule(value)
