"""The annotation that a decision leaves on every pod of a run: fairlead.dev/placement.

Compact JSON, the same bytes for the same pod and policies: the policy set's hash, and either which
policy is credited with which field, or why the pod was left alone; and which exceptions took which
policies away, if any did. No decision goes by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Enough to tell the sets of a cluster's life apart, and short enough to read out.
HASH_LENGTH = 16


def placed(
    set_hash: str,
    fields_by_policy: Mapping[str, Sequence[str]],
    policies_by_exception: Mapping[str, Sequence[str]],
) -> str:
    """The stamp of a pod that the policies were applied to; without any, an empty object."""
    return _compact({"policies": fields_by_policy}, set_hash, policies_by_exception)


def left_alone(
    set_hash: str, reason: str, policies_by_exception: Mapping[str, Sequence[str]]
) -> str:
    """The stamp of a pod that keeps its placement."""
    return _compact({"leftAlone": reason}, set_hash, policies_by_exception)


def _compact(
    said: dict[str, object], set_hash: str, exceptions: Mapping[str, Sequence[str]]
) -> str:
    said["set"] = set_hash[:HASH_LENGTH]
    if exceptions:
        said["exceptions"] = exceptions
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode("utf-8")


def read(text: object) -> Mapping[str, Any] | None:
    """What a stamp says, of the text of a pod's annotation; None if it is none that can be read."""
    if not isinstance(text, str):
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
