"""Whether a pod that was applied from a file can be applied from it again.

The API server lets almost nothing of a pod's spec change once it is made, and `kubectl apply`
sends what differs from the file. So where a policy changes what the file itself says, the next
apply of that file fails. Who only creates pods, and whoever owns them, never comes to that: the
warning is for pods without an owner that were applied, by kubectl (which keeps the file in an
annotation) or on the server's side (whose managedFields name the file's fields).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import jsonpatch
import orjson

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from webhook.admission.decision import Decision
    from webhook.placement.shapes import JsonObject

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# In managedFields a field's name comes with this, a list's item with another letter.
_FIELD: Final = "f:"


def warning(pod: JsonObject, decision: Decision) -> str:
    """What to tell the author of `pod`, which came as it is here; empty if there is nothing.

    The text names the first field that stands in the way, and has under 120 characters.
    """
    metadata = pod["metadata"]
    if decision.result != "placed" or metadata.get("ownerReferences"):
        return ""
    said = list(_files(metadata))
    if not said:
        return ""
    operations = [each for each in decision.patch if each["path"].startswith("/spec/")]
    # The rest of the spec is as long as its author likes, and stays as it is.
    touched = {each["path"].split("/")[2] for each in operations}
    before = _only(pod["spec"], touched)
    patch = copy.deepcopy(operations)
    after = jsonpatch.apply_patch({"spec": copy.deepcopy(before)}, patch)["spec"]
    for spec in said:
        for field in _changed(_only(spec, touched), before, after):
            return f"applying this pod again will fail: a policy changed spec.{field}; recreate it"
    return ""


def _only(spec: JsonObject, fields: Collection[str]) -> JsonObject:
    return {key: value for key, value in spec.items() if key in fields}


def _files(metadata: JsonObject) -> Iterator[JsonObject]:
    """The spec of each file that the pod was applied from, as nested objects of field names."""
    text = (metadata.get("annotations") or {}).get(LAST_APPLIED)
    if isinstance(text, str):
        yield _spec(_decoded(text), "spec")
    entries = metadata.get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("operation") == "Apply":
            yield _named(_spec(entry.get("fieldsV1"), "f:spec"))


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _spec(holder: Any, key: str) -> JsonObject:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def _named(fields: JsonObject) -> JsonObject:
    """Field names without their prefix; {} below stands for a value that goes as a whole."""
    inner = {key[2:]: value for key, value in fields.items() if key.startswith(_FIELD)}
    return {key: _named(value) if isinstance(value, dict) else {} for key, value in inner.items()}


def _changed(said: JsonObject, before: Any, after: Any) -> list[str]:
    """The members that the file names and whose values are others afterwards."""
    found = []
    for key, value in said.items():
        one, other = (side.get(key) if isinstance(side, dict) else None for side in (before, after))
        if one == other:
            continue
        # What goes as a whole differs; of an object only the members that the file names count.
        if not isinstance(value, dict) or not value or _changed(value, one, other):
            found.append(key)
    return found
