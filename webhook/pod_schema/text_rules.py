"""Rules of the API server for a pod's name and annotations.

Source: pkg/apis/core/validation of Kubernetes 1.36, among it ValidatePodSpecificAnnotations.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.dns_names import MAX_SUBDOMAIN, is_subdomain
from webhook.errors import UnreadableText
from webhook.foreign_text import parse_json
from webhook.placement.schema.syntax import annotation_key_fault
from webhook.pod_schema import field_checks, value_rules
from webhook.pod_schema.field_checks import Fault, mappings
from webhook.pod_schema.object_rules import below
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.pod_schema.field_checks import Path

_NAME: Final = (
    f"want at most {MAX_SUBDOMAIN} of a-z, 0-9, '-' and '.', a letter or digit at both ends of "
    "each part"
)
# Characters of a prefix that the API server keeps before it appends five letters.
_LONGEST_PREFIX: Final = 58
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MOST_ANNOTATED: Final = 256 * 1024
_INT32: Final = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)
_LOCALHOST: Final = "localhost/"
# The part of an annotation's key before a container's name; the values allowed in addition to
# localhost/NAME.
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_APP_ARMOR_WORDS: Final = ("", "runtime/default", "unconfined")
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_WORDS: Final = ("runtime/default", "docker/default", "unconfined")
# The words for a field's type, in annotations of either kind.
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "RuntimeDefault": ("runtime/default", "docker/default"),
    "Unconfined": ("unconfined",),
}
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"


def name_faults(metadata: Any) -> Iterator[Fault]:
    given = metadata if isinstance(metadata, dict) else {}
    name, prefix = given.get("name"), given.get("generateName")
    if isinstance(name, str) and name:
        if not is_subdomain(name):
            yield Fault(("metadata", "name"), f"{quoted(name)} is not a name: {_NAME}")
    elif isinstance(prefix, str) and prefix and not is_subdomain(f"{prefix[:_LONGEST_PREFIX]}a"):
        text = f"{quoted(prefix)} is not a name's beginning: {_NAME}"
        yield Fault(("metadata", "generateName"), text)


def annotation_faults(
    given: Any, path: Path, *, bound: bool = False, containers: Collection[str] | None = None
) -> Iterator[Fault]:
    """Check annotations that the API server validates. `bound`: the pod has a nodeName.

    `containers` are the names of the pod's containers; None if they are unknown.
    """
    size = 0
    for key, value in given.items() if isinstance(given, dict) else ():
        if fault := annotation_key_fault(str(key)):
            text = f"{quoted(str(key))} is not an annotation's key: {fault}"
            yield Fault((*path, key), text, at_key=True)
        size += len(str(key).encode()) + len(value.encode() if isinstance(value, str) else b"")
        if size > _MOST_ANNOTATED:
            yield Fault(path, f"have more than {_MOST_ANNOTATED} bytes in total; shorten them")
            return
        if isinstance(value, str) and (why := _why(str(key), value, containers, bound=bound)):
            yield Fault((*path, key), why)


def confined_container(key: str) -> str:
    """Return the container of an AppArmor annotation's key; empty for other keys."""
    return key.removeprefix(_APP_ARMOR) if key.startswith(_APP_ARMOR) else ""


def profile_faults(annotations: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield fields of a pod's spec that annotations contradict, paths relative to the spec.

    Source: validateSeccompAnnotationsAndFields, validateAppArmorAnnotationsAndFieldsMatchOnCreate.
    """
    system = spec.get("os")
    windows = isinstance(system, dict) and system.get("name") == "windows"
    of_container = {
        "seccompProfile": _SECCOMP,
        **({} if windows else {"appArmorProfile": _APP_ARMOR}),
    }
    yield from _contradicted((), spec, "seccompProfile", _SECCOMP_OF_POD, annotations)
    for key in ("initContainers", "containers"):
        for path, container in mappings(spec.get(key), (key,)):
            for field, prefix in of_container.items():
                annotation = f"{prefix}{container.get('name')}"
                yield from _contradicted(path, container, field, annotation, annotations)


def _contradicted(
    path: Path, given: Mapping[str, Any], field: str, key: str, annotations: Mapping[str, Any]
) -> Iterator[Fault]:
    context, value = given.get("securityContext"), annotations.get(key)
    profile = context.get(field) if isinstance(context, dict) else None
    if value is None or not isinstance(profile, dict):
        return
    kind = str(profile.get("type"))
    wanted = _TYPES.get(kind, (value,))
    if kind == "Localhost":
        kind = f"{_LOCALHOST}{profile.get('localhostProfile')}"
        wanted = (kind,)
    if value not in wanted:
        text = f"{kind} is not what the annotation {key} has, {quoted(str(value))}; remove that"
        yield Fault((*path, "securityContext", field, "type"), text)


def _why(key: str, value: str, containers: Collection[str] | None, *, bound: bool) -> str:
    """Return why the annotation is invalid; empty if it is valid."""
    if key == names.MIRROR_POD and not bound:
        return "is valid with nodeName only, because a mirror pod belongs to its node; remove it"
    if key == _DELETION_COST and not _is_int32(value):
        return f"{quoted(value)} is not a 32-bit whole number without a plus sign or leading zeros"
    if container := confined_container(key):
        if containers is not None and container not in containers:
            return f"the pod has no container {quoted(container)}"
        return _profile_fault(value, _APP_ARMOR_WORDS)
    if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP):
        path = value.removeprefix(_LOCALHOST)
        if path == value:
            return _profile_fault(value, _SECCOMP_WORDS)
        return f"{quoted(value)}: {why}" if (why := below(path)) else ""
    return _tolerations_fault(value) if key == _TOLERATIONS and value else ""


def _tolerations_fault(value: str) -> str:
    """Return why a text is not tolerations in JSON; fields that are unknown are skipped."""
    try:
        given = parse_json(value)
    except UnreadableText:
        return "is not JSON; Kubernetes no longer reads it: remove it"
    kind = "[]Toleration"
    faults = chain(field_checks.faults(given, kind), value_rules.faults(given, kind))
    for fault in faults:
        if fault.severity == "error" and not fault.at_key:
            at = "".join(
                f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path
            )
            return f"{at}: {fault.message}" if at else fault.message
    return ""


def _is_int32(value: str) -> bool:
    return _INT32.fullmatch(value) is not None and -(2**31) <= int(value) < 2**31


def _profile_fault(value: str, words: Collection[str]) -> str:
    if value in words or value.startswith(_LOCALHOST):
        return ""
    alternatives = ", ".join(filter(None, words))
    return f"{quoted(value)} is not one of {alternatives}, or {_LOCALHOST} with a profile's name"
