"""Check pod templates as written, and merge them as kubectl apply does.

The rules of merging are those of a strategic merge (k8s.io/api/core/v1, the tags patchStrategy and
patchMergeKey; k8s.io/apimachinery/pkg/util/strategicpatch): maps merge, null removes, the lists
below merge by their keys, every other list is replaced. `$patch: delete` removes an item of such a
list. `$patch: replace`, in a map or as an item, replaces the whole map or list by the rest of it.

kubectl also compares with the last applied object, and drops what an earlier source set. Here
replacing has the same effect: a volume keeps only the fields of the later one (patchStrategy
retainKeys), and a variable is replaced whole, because it has either value or valueFrom. New items
of a list are appended, so that a sidecar never becomes the first container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import InvalidPod
from webhook.placement import pod as pods
from webhook.placement.capacity_request import InvalidRequest
from webhook.policy.findings import path_text
from webhook.run.environment import requests
from webhook.run.manifests import FILES_VOLUME, KEYS_VOLUME
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
# The metadata that the API server's own controllers copy from a template into pods; they silently
# drop the rest.
_METADATA: Final = ("labels", "annotations", "finalizers")
# Lists of objects in each container.
_CONTAINER_LISTS: Final = ("env", "ports", "volumeMounts")
_CONTAINERS: Final = ("containers", "initContainers")


class MergeKey(NamedTuple):
    """The merge key of a list, and how two items with the same key are merged.

    retain: fields of the earlier item that the later one does not have are dropped.
    whole: the later item replaces the earlier one.
    """

    fields: tuple[str, ...]
    retain: bool = False
    whole: bool = False


_NAME: Final = MergeKey(("name",))
# Default values of fields that are part of a key.
_DEFAULTS: Final[Mapping[str, str]] = {"protocol": "TCP"}

# By the path below spec, without list positions. Ports and spread constraints use the keys of
# server-side apply, because the older keys cannot distinguish TCP from UDP.
LISTS: Final[Mapping[tuple[str, ...], MergeKey]] = {
    ("containers",): _NAME,
    ("initContainers",): _NAME,
    ("volumes",): MergeKey(("name",), retain=True),
    ("imagePullSecrets",): _NAME,
    ("schedulingGates",): _NAME,
    ("resourceClaims",): MergeKey(("name",), retain=True),
    ("hostAliases",): MergeKey(("ip",)),
    ("topologySpreadConstraints",): MergeKey(("topologyKey", "whenUnsatisfiable")),
    **{
        (containers, name): key
        for containers in ("containers", "initContainers")
        for name, key in (
            ("env", MergeKey(("name",), whole=True)),
            ("ports", MergeKey(("containerPort", "protocol"))),
            ("volumeMounts", MergeKey(("mountPath",))),
            ("volumeDevices", MergeKey(("devicePath",))),
        )
    },
}


def merged(base: JsonObject, over: JsonObject) -> JsonObject:
    """Return the pod template `base` with `over` applied; neither is changed.

    Values of an invalid type are kept as they are, for the checks to report.
    """
    result = _map(base, {key: value for key, value in over.items() if key != "spec"}, None)
    if over.get("spec") is not None:
        result["spec"] = _value(base.get("spec"), over["spec"], ())
    return result


def _map(base: JsonObject, over: JsonObject, path: tuple[str, ...] | None) -> JsonObject:
    """Merge a map at `path` below spec; None outside spec, where no list has a merge key."""
    result = {} if over.get(DIRECTIVE) == REPLACE else dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif key != DIRECTIVE:
            below = None if path is None else (*path, key)
            result[key] = _value(result.get(key), value, below)
    return result


def _value(base: Any, over: Any, path: tuple[str, ...] | None) -> Any:
    if isinstance(over, dict):
        return _map(base if isinstance(base, dict) else {}, over, path)
    key = LISTS.get(path) if path is not None else None
    if key is None or path is None or not _has_objects(over):
        return over
    return _list(base if _has_objects(base) else [], over, key, path)


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _list(
    base: Sequence[JsonObject], over: Sequence[JsonObject], key: MergeKey, path: tuple[str, ...]
) -> list[JsonObject]:
    if any(item.get(DIRECTIVE) == REPLACE for item in over):
        base = []
    result = {_key(item, key): item for item in base}
    for item in over:
        if item.get(DIRECTIVE) == REPLACE:
            continue
        item_key = _key(item, key)
        if item.get(DIRECTIVE) == DELETE:
            result.pop(item_key, None)
            continue
        below = {} if key.whole else result.get(item_key, {})
        kept = {k: v for k, v in below.items() if k in item} if key.retain else below
        result[item_key] = _map(kept, item, path)
    return list(result.values())


def _key(item: JsonObject, key: MergeKey) -> Hashable:
    values = [item.get(field, _DEFAULTS.get(field)) for field in key.fields]
    # A value of a wrong type may be a list, which is not hashable.
    return tuple(value if isinstance(value, (str, int)) else repr(value) for value in values)


def template_problems(template: JsonObject, at: Path, *, serving: bool) -> Iterator[str]:
    """Yield lines with the path below `at`, the problem and the cure.

    The model has already checked that metadata and spec, if present, are objects.
    """
    yield from _directives(template, at)
    yield from _metadata(template.get("metadata", {}), (*at, "metadata"))
    yield from _spec(template.get("spec", {}), (*at, "spec"), serving=serving)
    yield from _placement(template, at)


def _type_problem(at: Path, wanted: str, value: object) -> str:
    return f"{path_text(at)}: want {wanted}, not {type(value).__name__} {quoted(value)}"


def _metadata(metadata: JsonObject, at: Path) -> Iterator[str]:
    for key, value in metadata.items():
        if key in ("labels", "annotations"):
            yield from _texts(value, (*at, key))
        # kubectl generates templates with creationTimestamp: null.
        elif key not in (*_METADATA, DIRECTIVE) and value is not None:
            yield (
                f"{path_text((*at, key))}: does not reach the pods; remove it: only "
                f"{', '.join(_METADATA)} of a template's metadata do"
            )
    annotations = metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    yield from controller_annotations(annotations, at)
    text = annotations.get(names.CAPACITY)
    if isinstance(text, str):
        try:
            requests(text)
        except InvalidRequest as error:
            path = path_text((*at, "annotations", names.CAPACITY))
            yield f"{path}: {str(error).removeprefix(f'annotation {names.CAPACITY}: ')}"


def controller_annotations(annotations: Collection[str], at: Path) -> Iterator[str]:
    """Yield a problem for each annotation below `at` that only the controller sets."""
    for key in names.OF_CONTROLLER:
        if key in annotations:
            yield f"{path_text((*at, 'annotations', key))}: only Fairlead sets it; remove it"


def _texts(value: object, at: Path) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield _type_problem(at, "an object", value)
        return
    for key, text in value.items():
        if text is not None and not isinstance(text, str):
            yield f"{_type_problem((*at, key), 'a string', text)}; put it in quotes"


def _spec(spec: JsonObject, at: Path, *, serving: bool) -> Iterator[str]:
    policy = spec.get("restartPolicy")
    if serving and policy not in (None, "Always"):
        yield (
            f"{path_text((*at, 'restartPolicy'))}: is {quoted(policy)}, but a Deployment's "
            "pods always restart; remove it"
        )
    if not serving:
        if policy not in (None, "Never"):
            yield (
                f"{path_text((*at, 'restartPolicy'))}: is {quoted(policy)}, but pods of a "
                "Run never restart in place; remove it, and set restartPolicy of the role "
                "under spec.replicas"
            )
        for key in ("hostname", "subdomain"):
            if spec.get(key) is not None:
                yield (
                    f"{path_text((*at, key))}: is {quoted(spec[key])}, but Fairlead sets the "
                    "names of replicas; remove it"
                )
    if spec.get("dnsConfig") is not None and not isinstance(spec["dnsConfig"], dict):
        yield _type_problem((*at, "dnsConfig"), "an object", spec["dnsConfig"])
    yield from _objects(spec.get("volumes"), (*at, "volumes"))
    yield from _own_volumes(spec.get("volumes"), (*at, "volumes"))
    first_paths: dict[str, Path] = {}
    for key in _CONTAINERS:
        yield from _containers(spec.get(key), (*at, key), first_paths)


def _containers(containers: object, at: Path, first_paths: dict[str, Path]) -> Iterator[str]:
    """Check containers; `first_paths` is by name, init containers included."""
    yield from _objects(containers, at)
    for position, container in enumerate(containers if isinstance(containers, list) else ()):
        if not isinstance(container, dict) or container.get(DIRECTIVE) == REPLACE:
            continue
        here = (*at, position)
        name = container.get("name")
        if not isinstance(name, str) or not name:
            yield f"{path_text((*here, 'name'))}: a container needs a name"
        elif name in first_paths:
            first = path_text(first_paths[name][-2:])
            yield (
                f"{path_text((*here, 'name'))}: {quoted(name)} is already used by {first}; rename "
                "one"
            )
        else:
            first_paths[name] = here
        for key in _CONTAINER_LISTS:
            yield from _objects(container.get(key), (*here, key))
        for key in ("resources", "securityContext"):
            if container.get(key) is not None and not isinstance(container[key], dict):
                yield _type_problem((*here, key), "an object", container[key])


def _own_volumes(volumes: object, at: Path) -> Iterator[str]:
    for position, volume in enumerate(volumes if isinstance(volumes, list) else ()):
        name = volume.get("name") if isinstance(volume, dict) else None
        if name in (FILES_VOLUME, KEYS_VOLUME):
            yield (
                f"{path_text((*at, position, 'name'))}: {quoted(name)} is what Fairlead calls a "
                "volume of its own; rename this one"
            )


def _objects(value: object, at: Path) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, list):
        yield _type_problem(at, "a list", value)
        return
    for position, item in enumerate(value):
        if not isinstance(item, dict):
            yield _type_problem((*at, position), "an object", item)


def _placement(template: JsonObject, at: Path) -> Iterator[str]:
    """Yield the placement problem that the engine would raise, one field at a time."""
    # A null removes a field in a merge, and is invalid for the engine.
    spec = merged({}, template).get("spec", {})
    try:
        pods.parse_pod({"metadata": {}, "spec": spec})
    except InvalidPod as error:
        yield f"{path_text(at)}.{error}"


def _directives(value: Any, at: Path) -> Iterator[str]:
    """Yield a problem for each unknown strategic merge directive, at any depth."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _directives(item, (*at, position))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == DIRECTIVE and item in (DELETE, REPLACE):
                continue
            if isinstance(key, str) and key.startswith("$"):
                yield (
                    f"{path_text((*at, key))}: is {quoted(item)}; the supported directives "
                    f"of a strategic merge are {DIRECTIVE}: {DELETE} and {DIRECTIVE}: {REPLACE}"
                )
            else:
                yield from _directives(item, (*at, key))
