"""The warnings of one answer, for the person at kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.admission import reapply
from webhook.admission.review import SIGNATURE, signed
from webhook.identity import misread

if TYPE_CHECKING:
    from webhook.admission.decision import Decision
    from webhook.placement.shapes import JsonObject

# The API server cuts what all warnings of a request say at 4,096 characters, in the middle of a
# word if need be (apiserver/pkg/endpoints/filters/warning.go).
MAX_CHARACTERS: Final = 4096
# Room for the line that tells of the others.
_ROOM: Final = 100
# Names have 63 characters as a rule, and may have 253.
_LONGEST_NAME: Final = 63


def warnings(
    pod: JsonObject, decision: Decision, no_node: str = "", *, titled: bool = False
) -> list[str]:
    """What the author of `pod`, which came as it is here, should know of the decision.

    That no node admits it, if so; the engine's warnings, labels of ours that could not be read, and
    whether the pod can be applied again. Together at most MAX_CHARACTERS; where they do not fit,
    the last one says how many are missing. With `titled` each says which pod it is about.
    """
    if decision.identity is None:
        return []
    found = [no_node] if no_node else []
    metadata = pod["metadata"]
    found += decision.warnings
    found += misread(metadata.get("labels") or {}, metadata.get("annotations") or {})
    again = reapply.warning(pod, decision)
    if again:
        found.append(again)
    if titled:
        title = _title(metadata)
        found = [f"{title}{text.removeprefix(SIGNATURE)}" for text in found]
    return fitting(found)


def _title(metadata: JsonObject) -> str:
    """So that who applies many pods at once knows which is meant."""
    name = metadata.get("name") or metadata.get("generateName")
    return f"pod {str(name)[:_LONGEST_NAME]}: " if name else ""


def fitting(found: list[str], where: str = "`fairlead explain` prints all of them") -> list[str]:
    """As many of these as fit into one answer, where each is signed.

    The last says how many are missing, and `where`.
    """
    lengths = [len(signed(text)) for text in found]
    if sum(lengths) <= MAX_CHARACTERS:
        return found
    left = MAX_CHARACTERS - _ROOM
    kept: list[str] = []
    for text, length in zip(found, lengths, strict=True):
        left -= length
        if left < 0:
            break
        kept.append(text)
    more = len(found) - len(kept)
    return [*kept, f"and {more} more warnings; {where}"]
