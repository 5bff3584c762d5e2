"""What is wrong with a pod template as it was written, before anything is merged with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidPod
from webhook.placement import pod as pods
from webhook.placement.capacity_request import InvalidRequest
from webhook.policy.findings import path_text
from webhook.run.environment import requests
from webhook.run.mounts import FILES_VOLUME, KEYS_VOLUME
from webhook.run.template import DELETE, DIRECTIVE, REPLACE, merged
from webhook.strict import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path

# Of a template's metadata the API server's own controllers copy these into pods; the rest they
# leave out without a word.
_METADATA: Final = ("labels", "annotations", "finalizers")
# Lists of objects that are read in each container.
_CONTAINER_LISTS: Final = ("env", "ports", "volumeMounts")
_CONTAINERS: Final = ("containers", "initContainers")


def template_problems(template: JsonObject, at: Path, *, serving: bool) -> Iterator[str]:
    """Lines with the path below `at`, what is wrong there, and the cure.

    That it has metadata and spec, if anything, and that both are objects, the model has seen to.
    """
    yield from _directives(template, at)
    yield from _metadata(template.get("metadata", {}), (*at, "metadata"))
    yield from _spec(template.get("spec", {}), (*at, "spec"), serving=serving)
    yield from _placement(template, at)


def _wanted(at: Path, wanted: str, seen: object) -> str:
    return f"{path_text(at)}: want {wanted}, not {type(seen).__name__} {shown(seen)}"


def _metadata(metadata: JsonObject, at: Path) -> Iterator[str]:
    for key, value in metadata.items():
        if key in ("labels", "annotations"):
            yield from _texts(value, (*at, key))
        # kubectl's own templates have a null there.
        elif key not in (*_METADATA, DIRECTIVE) and value is not None:
            yield (
                f"{path_text((*at, key))}: does not reach the pods; remove it: "
                f"of a template's metadata {', '.join(_METADATA)} do"
            )
    annotations = metadata.get("annotations")
    text = annotations.get(names.CAPACITY) if isinstance(annotations, dict) else None
    if isinstance(text, str):
        try:
            requests(text)
        except InvalidRequest as error:
            path = path_text((*at, "annotations", names.CAPACITY))
            yield f"{path}: {str(error).removeprefix(f'annotation {names.CAPACITY}: ')}"


def _texts(value: object, at: Path) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield _wanted(at, "an object", value)
        return
    for key, text in value.items():
        if text is not None and not isinstance(text, str):
            yield f"{_wanted((*at, key), 'a string', text)}; put it in quotes"


def _spec(spec: JsonObject, at: Path, *, serving: bool) -> Iterator[str]:
    policy = spec.get("restartPolicy")
    if serving and policy not in (None, "Always"):
        yield (
            f"{path_text((*at, 'restartPolicy'))}: is {shown(policy)}, and a Deployment's pods "
            "always restart; remove it"
        )
    if not serving:
        if policy not in (None, "Never"):
            yield (
                f"{path_text((*at, 'restartPolicy'))}: is {shown(policy)}, and pods never restart "
                "in place; remove it, and set restartPolicy of the role under spec.replicas"
            )
        for key in ("hostname", "subdomain"):
            if spec.get(key) is not None:
                yield (
                    f"{path_text((*at, key))}: is {shown(spec[key])}, and replicas find each other "
                    "by names that Fairlead gives; remove it"
                )
    if spec.get("dnsConfig") is not None and not isinstance(spec["dnsConfig"], dict):
        yield _wanted((*at, "dnsConfig"), "an object", spec["dnsConfig"])
    yield from _objects(spec.get("volumes"), (*at, "volumes"))
    yield from _own_volumes(spec.get("volumes"), (*at, "volumes"))
    seen: dict[str, Path] = {}
    for key in _CONTAINERS:
        yield from _containers(spec.get(key), (*at, key), seen)


def _containers(containers: object, at: Path, seen: dict[str, Path]) -> Iterator[str]:
    """`seen`: where each container's name was seen first; init containers share the names."""
    yield from _objects(containers, at)
    for position, container in enumerate(containers if isinstance(containers, list) else ()):
        if not isinstance(container, dict) or container.get(DIRECTIVE) == REPLACE:
            continue
        here = (*at, position)
        name = container.get("name")
        if not isinstance(name, str) or not name:
            yield f"{path_text((*here, 'name'))}: a container needs a name"
        elif name in seen:
            first = path_text(seen[name][-2:])
            yield f"{path_text((*here, 'name'))}: {shown(name)} is that of {first} too; rename one"
        else:
            seen[name] = here
        for key in _CONTAINER_LISTS:
            yield from _objects(container.get(key), (*here, key))
        for key in ("resources", "securityContext"):
            if container.get(key) is not None and not isinstance(container[key], dict):
                yield _wanted((*here, key), "an object", container[key])


def _own_volumes(volumes: object, at: Path) -> Iterator[str]:
    for position, volume in enumerate(volumes if isinstance(volumes, list) else ()):
        name = volume.get("name") if isinstance(volume, dict) else None
        if name in (FILES_VOLUME, KEYS_VOLUME):
            yield (
                f"{path_text((*at, position, 'name'))}: {shown(name)} is what Fairlead calls a "
                "volume of its own; rename this one"
            )


def _objects(value: object, at: Path) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, list):
        yield _wanted(at, "a list", value)
        return
    for position, item in enumerate(value):
        if not isinstance(item, dict):
            yield _wanted((*at, position), "an object", item)


def _placement(template: JsonObject, at: Path) -> Iterator[str]:
    """What the engine too would stumble over; it names one field at a time."""
    # Nulls mean something in a template that is merged into another, and nothing to the engine.
    spec = merged({}, template).get("spec", {})
    try:
        pods.read({"metadata": {}, "spec": spec})
    except InvalidPod as error:
        yield f"{path_text(at)}.{error}"


def _directives(value: Any, at: Path) -> Iterator[str]:
    """Those of a strategic merge that are not known, at whatever depth."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _directives(item, (*at, position))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == DIRECTIVE and item in (DELETE, REPLACE):
                continue
            if isinstance(key, str) and key.startswith("$"):
                yield (
                    f"{path_text((*at, key))}: is {shown(item)}, and of a strategic merge's "
                    f"directives {DIRECTIVE}: {DELETE} and {DIRECTIVE}: {REPLACE} are known"
                )
            else:
                yield from _directives(item, (*at, key))
