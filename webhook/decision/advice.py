"""The warnings of an answer, which kubectl shows to the pod's author."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from webhook import names
from webhook.dns_names import MAX_LABEL
from webhook.errors import UnreadableText
from webhook.foreign_text import annotation, parse_object
from webhook.identity import misread, unknown_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from webhook.decision.decision import Decision
    from webhook.placement.shapes import JsonObject

# kubectl prints a warning without the name of the webhook that sent it.
SIGNATURE: Final = "fairlead: "
# The API server truncates the warnings of one request at 4,096 characters in total, if need be
# in the middle of a word (apiserver/pkg/endpoints/filters/warning.go).
MAX_CHARACTERS: Final = 4096
# Reserved for the last line, which gives the number of omitted warnings.
_ROOM: Final = 100
# In managedFields a field's name has this prefix; a list's item has another letter.
_FIELD: Final = "f:"


def signed(warning: str) -> str:
    """Return the warning with the prefix that names its source, as in a response."""
    return warning if warning.startswith(SIGNATURE) else f"{SIGNATURE}{warning}"


def warnings(
    pod: JsonObject, decision: Decision, no_node: str = "", *, titled: bool = False
) -> list[str]:
    """Return the warnings about the decision for the author of `pod`, the pod as received.

    They are: that no node admits the pod (`no_node`, empty if a node does); the engine's warnings;
    labels of Fairlead that cannot be parsed; and whether the pod can be applied again. For a pod
    without a run, they are about unknown keys with Fairlead's prefix only. Together they have at
    most MAX_CHARACTERS; if some do not fit, the last one gives the number omitted. With `titled`,
    each warning names its pod.
    """
    metadata = pod["metadata"]
    keys = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if decision.identity is None:
        texts = [*unknown_keys(*keys)]
    else:
        again = reapply_warning(pod, decision)
        every = (no_node, *decision.warnings, *misread(*keys), again)
        texts = [text for text in every if text]
    if titled:
        title = _title(metadata)
        texts = [f"{title}{text.removeprefix(SIGNATURE)}" for text in texts]
    return fitting(texts)


def _title(metadata: JsonObject) -> str:
    """Return a prefix that names the pod, for a user who applies many pods at once."""
    # A name usually fits a label (63 characters), but may have 253. The API server validates it
    # later, and a warning with a control character would not reach the user.
    name = str(metadata.get("name") or metadata.get("generateName") or "")[:MAX_LABEL]
    return f"pod {name}: " if name and name.isprintable() else ""


def fitting(texts: list[str], where: str = "`fairlead explain` prints all of them") -> list[str]:
    """Return the warnings that fit into one response, counted with their signature.

    The last one gives the number of omitted warnings, and `where` to find them.
    """
    if not texts:
        return texts
    lengths = [len(signed(text)) for text in texts]
    if sum(lengths) <= MAX_CHARACTERS:
        return texts
    left = MAX_CHARACTERS - _ROOM
    kept: list[str] = []
    for text, length in zip(texts, lengths, strict=True):
        left -= length
        if left < 0:
            break
        kept.append(text)
    more = len(texts) - len(kept)
    return [*kept, f"and {more} more warnings; {where}"]


def reapply_warning(pod: JsonObject, decision: Decision) -> str:
    """Return a warning if a pod that was applied from a file cannot be applied from it again.

    The API server forbids changes to almost all of the spec of an existing pod, and `kubectl apply`
    sends the differences from the file. If a policy changes a field that the file sets, the next
    apply of that file fails. Clients that only create pods, such as controllers, are not affected.
    The warning is for pods without an owner that were applied: by kubectl, which stores the file in
    an annotation, or by server-side apply, whose managedFields list the file's fields.

    The text names the first field that blocks the next apply, and has under 120 characters.
    """
    metadata = pod["metadata"]
    if decision.result != "placed" or metadata.get("ownerReferences"):
        return ""
    files = list(_files(metadata))
    if not files:
        return ""
    operations = [
        operation for operation in decision.patch if operation["path"].startswith("/spec/")
    ]
    # The other fields of the spec may be long, and do not change.
    touched = {operation["path"].split("/")[2] for operation in operations}
    before = _only(pod["spec"], touched)
    patch = copy.deepcopy(operations)
    after = jsonpatch.apply_patch({"spec": copy.deepcopy(before)}, patch)["spec"]
    for spec in files:
        for field in _changed(_only(spec, touched), before, after):
            return f"applying this pod again will fail: a policy changed spec.{field}; recreate it"
    return ""


def _only(spec: JsonObject, fields: Collection[str]) -> JsonObject:
    return {key: value for key, value in spec.items() if key in fields}


def _files(metadata: JsonObject) -> Iterator[JsonObject]:
    """Yield the spec of each file that the pod was applied from, as nested field names."""
    if text := annotation(metadata, names.LAST_APPLIED):
        with suppress(UnreadableText):
            yield _spec(parse_object(text), "spec")
    entries = metadata.get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("operation") == "Apply":
            yield _unprefixed(_spec(entry.get("fieldsV1"), "f:spec"))


def _spec(holder: Any, key: str) -> JsonObject:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _unprefixed(fields: JsonObject) -> JsonObject:
    """Return field names without their prefix; {} stands for a value that is replaced whole."""
    inner = {key[2:]: value for key, value in fields.items() if key.startswith(_FIELD)}
    return {
        key: _unprefixed(value) if isinstance(value, dict) else {} for key, value in inner.items()
    }


def _changed(file: JsonObject, before: Any, after: Any) -> list[str]:
    """Return the fields that the file sets and whose values changed."""
    changed_keys = []
    for key, value in file.items():
        old_value, other = (
            side.get(key) if isinstance(side, dict) else None for side in (before, after)
        )
        if old_value == other:
            continue
        # A value that is replaced whole differs; in an object only the file's fields count.
        if not isinstance(value, dict) or not value or _changed(value, old_value, other):
            changed_keys.append(key)
    return changed_keys
