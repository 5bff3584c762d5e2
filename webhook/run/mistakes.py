"""Likely mistakes in a Run: values that Kubernetes takes, and that do not do what is meant."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.dns_names import MAX_SUBDOMAIN, is_subdomain
from webhook.placement.quantity import nanos
from webhook.pod_schema.field_checks import Fault
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.field_checks import Path
    from webhook.run.plan import Plan

_OF_BYTES: Final = ("memory", "ephemeral-storage")
# Billionths of a byte. No container of any image starts in less than a mebibyte.
_LEAST: Final = 2**20 * 10**9
_ONE: Final = 10**9
_NAME: Final = f"want 1 to {MAX_SUBDOMAIN} of a-z, 0-9, '-' and '.'"


def written_mistakes(template: JsonObject, at: Path) -> Iterator[Fault]:
    """Yield likely mistakes in a template as written, with paths from the Run's root."""
    spec = template.get("spec")
    pod: Mapping[str, Any] = spec if isinstance(spec, dict) else {}
    for field in ("initContainers", "containers"):
        for number, container in _objects(pod.get(field)):
            where = (*at, "spec", field, number)
            yield from _program(container.get("command"), (*where, "command"))
            yield from resource_mistakes(container.get("resources"), (*where, "resources"))
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    asked = annotations.get(names.CAPACITY) if isinstance(annotations, dict) else None
    for entry in asked.split(",") if isinstance(asked, str) else ():
        capacity_class = entry.partition("=")[0].strip()
        if capacity_class and not is_subdomain(capacity_class):
            text = f"no CapacityClass can have the name {quoted(capacity_class)}; {_NAME}"
            yield Fault((*at, "metadata", "annotations", names.CAPACITY), text, "warning")
    for number, volume in _objects(pod.get("volumes")):
        claim = volume.get("persistentVolumeClaim")
        name = claim.get("claimName") if isinstance(claim, dict) else None
        if isinstance(name, str) and name and not is_subdomain(name):
            path = (*at, "spec", "volumes", number, "persistentVolumeClaim", "claimName")
            text = f"no PersistentVolumeClaim can have the name {quoted(name)}, so no pod starts"
            yield Fault(path, f"{text}; {_NAME}", "warning")


def resource_mistakes(resources: Any, at: Path) -> Iterator[Fault]:
    """Yield amounts of bytes that lack their unit."""
    for kind in ("requests", "limits"):
        listed = resources.get(kind) if isinstance(resources, dict) else None
        amounts: Mapping[str, Any] = listed if isinstance(listed, dict) else {}
        for name in _OF_BYTES:
            text = str(amounts.get(name, ""))
            with suppress(ValueError):
                if 0 < (count := nanos(text)) < _LEAST:
                    number = text.rstrip("mkKi")
                    what = f"{quoted(text)} is {count / _ONE:g} bytes"
                    cure = f"for mebibytes write {number}Mi, for gibibytes {number}Gi"
                    yield Fault((*at, kind, name), f"{what}; {cure}", "warning")


def replaced_variables(planned: Plan, role: str) -> Iterator[tuple[Path, str]]:
    """Yield the Run's own variables that replace those by which replicas find their place.

    These differ between replicas. Of a run with one replica all count. Paths are of a pod's spec.
    """
    template = planned.templates[role]
    others = [
        planned.replica_env(other, index).env
        for other, replica in planned.run.spec.roles.items()
        for index in range(min(replica.count, 2))
    ]
    given = planned.replica_env(role, 0).env
    replaced = {
        name
        for name in template.own_variables & given.keys()
        if len(others) < 2 or any(other.get(name) != given[name] for other in others)
    }
    for number, container in enumerate(template.containers(planned.replica_env(role, 0))):
        for at, variable in _objects(container.get("env")) if number == template.at else ():
            if variable.get("name") in replaced:
                yield ("containers", number, "env", at, "name"), str(variable["name"])


def _program(command: Any, at: Path) -> Iterator[Fault]:
    first = command[0] if isinstance(command, list) and command else None
    if isinstance(first, str) and any(character.isspace() for character in first.strip()):
        words = ", ".join(quoted(word) for word in first.split()[:4])
        text = f"{quoted(first)} is the name of one program, blanks included"
        yield Fault((*at, 0), f"{text}; give each word alone: [{words}]", "warning")


def _objects(listed: Any) -> Iterable[tuple[int, Mapping[str, Any]]]:
    items = listed if isinstance(listed, list) else []
    return [(number, item) for number, item in enumerate(items) if isinstance(item, dict)]
