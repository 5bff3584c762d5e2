"""The controller reference of an object, and the Run that it names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping


def controller_of(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object's controller reference; None without one."""
    references: list[dict[str, Any]] = raw["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def owner(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return name and uid of the Run in the object's controller reference; None without one.

    An object has at most one controller reference (metav1.OwnerReference.controller). The Run's
    reference may have any version of Fairlead's group.
    """
    metadata = raw.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in references or ():
        if reference.get("controller") and reference.get("kind") == names.RUN_KIND:
            group, _, _ = reference.get("apiVersion", "").rpartition("/")
            if group == names.GROUP:
                return reference["name"], sys.intern(reference["uid"])
    return None


def owner_uid(raw: Mapping[str, Any]) -> str | None:
    """Return the uid of the Run that owns the object; None without one."""
    run_owner = owner(raw)
    return run_owner[1] if run_owner else None
