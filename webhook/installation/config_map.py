"""The ConfigMap of policies that are files: whose it is, and what may be written into it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InstallationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]

# A ConfigMap holds 1 MiB (k8s.io/api/core/v1, MaxSecretSize); some of it is metadata.
MAX_BYTES: Final = 1_000_000


def with_policies(config_map: Mapping[str, Any], files: Mapping[str, str] | None) -> Json:
    """The ConfigMap with these files, or its own, and a note of what was put there.

    By that note it is told later whether somebody has changed them. Raises InstallationError if
    they are too many for a ConfigMap.
    """
    data = dict(config_map.get("data") or {}) if files is None else dict(sorted(files.items()))
    if (size := sum(len(name) + len(text.encode()) for name, text in data.items())) > MAX_BYTES:
        raise InstallationError(
            f"the policies have {size:,} bytes, and a ConfigMap holds {MAX_BYTES:,}: "
            "leave out what your cluster does not need"
        )
    metadata = dict(config_map["metadata"])
    annotations = {**(metadata.get("annotations") or {}), names.POLICIES_APPLIED: digest(data)}
    return {**config_map, "metadata": {**metadata, "annotations": annotations}, "data": data}


def changed_by_others(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether somebody else wrote the policies of the live ConfigMap, or has changed them.

    What is as it would be applied is nobody's change, whoever wrote it.
    """
    annotations = live["metadata"].get("annotations") or {}
    data = live.get("data") or {}
    if live.get("binaryData"):
        return True
    return data != wanted["data"] and annotations.get(names.POLICIES_APPLIED) != digest(data)


def digest(data: Mapping[str, str]) -> str:
    """What tells one set of files from another."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
