"""The annotation that a decision leaves on every pod of a run: fairlead.dev/placement.

Compact JSON, the same bytes for the same pod and policies: the policy set's hash, and either which
policy is credited with which field, or why the pod was left alone. Never read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Enough to tell the sets of a cluster's life apart, and short enough to read out.
HASH_LENGTH = 16


def placed(set_hash: str, fields_by_policy: Mapping[str, Sequence[str]]) -> str:
    """The stamp of a pod that the policies were applied to; without any, an empty object."""
    return _compact({"policies": fields_by_policy, "set": set_hash[:HASH_LENGTH]})


def left_alone(set_hash: str, reason: str) -> str:
    """The stamp of a pod that keeps its placement."""
    return _compact({"leftAlone": reason, "set": set_hash[:HASH_LENGTH]})


def _compact(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode("utf-8")
