"""The annotation fairlead.dev/placement, which every decision leaves on a run's pod.

Compact JSON, deterministic for the same pod and policies. It holds the policy set's hash; either
the fields that each policy set, or why the pod was left alone; and the policies that exceptions
set aside and the fallbacks, if any. No decision reads it; the controller reads the fallbacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Enough to distinguish all policy sets of a cluster's lifetime, and short enough to read aloud.
HASH_LENGTH = 16


def placed(
    set_hash: str,
    fields_by_policy: Mapping[str, Sequence[str]],
    policies_by_exception: Mapping[str, Sequence[str]],
    fallbacks: Mapping[str, str | int | None],
) -> str:
    """Return the stamp of a pod to which policies apply; an empty object if none does.

    `fallbacks` is by class: the seconds after which the controller gives up waiting, None if it
    does not; or the time until when the class is not required.
    """
    content: dict[str, object] = {"policies": fields_by_policy}
    if fallbacks:
        content["fallback"] = fallbacks
    return _compact(content, set_hash, policies_by_exception)


def left_alone(
    set_hash: str, reason: str, policies_by_exception: Mapping[str, Sequence[str]]
) -> str:
    """Return the stamp of a pod that keeps its placement."""
    return _compact({"leftAlone": reason}, set_hash, policies_by_exception)


def _compact(
    content: dict[str, object], set_hash: str, exceptions: Mapping[str, Sequence[str]]
) -> str:
    content["set"] = set_hash[:HASH_LENGTH]
    if exceptions:
        content["exceptions"] = exceptions
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode("utf-8")


def parse_stamp(text: object) -> Mapping[str, Any] | None:
    """Parse the text of a pod's annotation; None if it is not a valid stamp."""
    if not isinstance(text, str):
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
