"""One pod template over another, as kubectl apply would merge them.

The rules are those of a strategic merge (k8s.io/api/core/v1, the tags patchStrategy and
patchMergeKey; k8s.io/apimachinery/pkg/util/strategicpatch): maps merge, null removes, the lists
below merge by their keys, every other list is replaced. `$patch: delete` removes an item of such a
list, and `$patch: replace`, in a map or as an item, has the rest of the map or list replace all.

Where kubectl compares with what was applied last, and so forgets an earlier source, the same comes
about by replacing: a volume keeps only what the later one names (patchStrategy retainKeys), and a
variable is replaced whole, for it has a value or a valueFrom. New items of a list follow those that
are there, so that a sidecar never becomes the first container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from webhook.placement.shapes import JsonObject

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"


class MergeKey(NamedTuple):
    """How the items of a list are told apart, and what becomes of two with one key.

    retain: the fields of the earlier item that the later does not name are dropped.
    whole: the later item takes the earlier one's place.
    """

    fields: tuple[str, ...]
    retain: bool = False
    whole: bool = False


_NAME: Final = MergeKey(("name",))
# What a field is if it is left out, where it is part of a key.
_DEFAULTS: Final[Mapping[str, str]] = {"protocol": "TCP"}

# By the path below spec, without the positions in lists. Ports and spread constraints go by the
# keys of server-side apply: those of the older form cannot tell TCP from UDP.
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
    """The pod template `base` with `over` upon it; neither is changed.

    What has no shape of a template is taken as it is, for the checks to name.
    """
    result = _map(base, {key: value for key, value in over.items() if key != "spec"}, None)
    if over.get("spec") is not None:
        result["spec"] = _value(base.get("spec"), over["spec"], ())
    return result


def _map(base: JsonObject, over: JsonObject, path: tuple[str, ...] | None) -> JsonObject:
    """`path` is where the map stands below spec; None beside it, where no list has a key."""
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
        own = _key(item, key)
        if item.get(DIRECTIVE) == DELETE:
            result.pop(own, None)
            continue
        below = {} if key.whole else result.get(own, {})
        kept = {k: v for k, v in below.items() if k in item} if key.retain else below
        result[own] = _map(kept, item, path)
    return list(result.values())


def _key(item: JsonObject, key: MergeKey) -> Hashable:
    found = [item.get(field, _DEFAULTS.get(field)) for field in key.fields]
    # A field of the wrong type may be a list, which no dictionary takes.
    return tuple(each if isinstance(each, (str, int)) else repr(each) for each in found)
