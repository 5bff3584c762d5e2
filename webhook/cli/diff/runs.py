"""From a Run as JSON to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.controller.run_cache import typed
from webhook.run.nulls import without_nulls
from webhook.run.plan import plan

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan

# The API server gives each Run an uid, by which its pods are selected; a file's has none yet.
_UNSTORED = {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "0"}


def plan_of(raw: JsonObject, namespace: str) -> Plan:
    """The plan of a Run, of a file or of a cluster; `namespace` is for one that names none.

    Raises InvalidRun with everything that is wrong with it.
    """
    own = raw.get("metadata")
    members = own.items() if isinstance(own, dict) else ()
    known = {key: value for key, value in members if value and key != "managedFields"}
    metadata = {**_UNSTORED, "namespace": namespace, **known}
    metadata.setdefault("name", f"{metadata.get('generateName', 'run-')}xxxxx")
    return plan(typed(without_nulls({**raw, "metadata": metadata})))
