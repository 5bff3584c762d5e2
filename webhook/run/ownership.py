"""What every object that is made for a Run carries: labels to select by, and its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run


def labels(run: Run) -> dict[str, str]:
    """Those of all objects of the run."""
    found = {
        names.MANAGED_BY: names.MANAGER,
        names.RUN: run.name,
        names.RUN_UID: run.metadata.uid,
        names.KIND: run.spec.kind,
    }
    if run.spec.framework:
        found[names.FRAMEWORK] = run.spec.framework
    return found


def selector(run: Run) -> dict[str, str]:
    """The pods of the run and of no other, though it may have had its name before."""
    return {names.RUN_UID: run.metadata.uid}


def owners(run: Run) -> list[JsonObject]:
    """The Run, as metav1.OwnerReference.

    blockOwnerDeletion is false: it would need the permission to set the Run's finalizers, and
    nothing waits for the pods.
    """
    return [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RUN_KIND,
            "name": run.name,
            "uid": run.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]


def metadata(run: Run, name: str) -> JsonObject:
    """Of an object that is not a pod."""
    return {
        "name": name,
        "namespace": run.namespace,
        "labels": labels(run),
        "ownerReferences": owners(run),
    }


def named(api_version: str, kind: str, meta: JsonObject, rest: Mapping[str, object]) -> JsonObject:
    """An object, with its keys in the order in which people write them."""
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}
