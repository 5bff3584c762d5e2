"""Bring a live object back to what is rendered, without what others have added."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.installation.object_kinds import DEPLOYMENT
from webhook.interception import OWN_SUFFIX
from webhook.placement.patch import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]

# An autoscaler writes replicas, and an admin node selectors: what they add to these kinds stays.
SHARED: Final = (DEPLOYMENT, "CronJob")
# Annotations that record a limit to some namespaces.
LIMITS: Final = (names.INTERCEPTED_NAMESPACES, names.INTERCEPTED_NAMESPACE_SELECTOR)
_QUERY: Final = {"fieldManager": names.INSTALL_MANAGER, "fieldValidation": "Strict"}
_IDENTITY: Final = ("apiVersion", "kind", "metadata", "status")


async def restore(client: Client, key: Key, live: Json, wanted: Mapping[str, Any]) -> Json:
    """Remove what others have added to the object that was read; return it as it is stored.

    Raises ClusterError, with the status 409 if it is not the version that was read any more.
    """
    if not (patch := restoration(key, live, wanted)):
        return live
    return await client.patch(key.path, patch, "json", query=_QUERY)


class DryRuns:
    """What writes would make of live objects. The API server is asked once about each object."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: dict[Key, asyncio.Task[Json]] = {}

    async def foresee(self, key: Key, live: Json, wanted: Mapping[str, Any]) -> Json:
        """Return what a write makes of the object. Raises ClusterError, each time it is asked."""
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(_foresee(self._client, key, live, wanted))
        return await self._answers[key]


async def _foresee(client: Client, key: Key, live: Json, wanted: Mapping[str, Any]) -> Json:
    """Return what a write makes of the object, by a dry run. Raises ClusterError."""
    dry_run = {**_QUERY, "dryRun": "All"}
    after = live
    if key.kind.name in SHARED:
        query = {**dry_run, "force": "true"}
        after = await client.patch(key.path, wanted, "apply", query=query)
    elif patch := restoration(key, live, wanted):
        after = await client.patch(key.path, patch, "json", query=dry_run)
    metadata = dict(after["metadata"])
    for field in ("labels", "annotations"):
        now = metadata.get(field) or {}
        rendered = wanted["metadata"].get(field) or {}
        kept = {name: value for name, value in now.items() if not _is_stray(name, rendered)}
        metadata[field] = {**kept, **rendered}
    return {**after, "metadata": metadata}


def restoration(key: Key, live: Json, wanted: Mapping[str, Any]) -> list[Json]:
    """Return the JSON Patch for the version that was read; nothing if there is nothing to do.

    An apply alone leaves fields of others, and adds to a list what somebody has replaced there. So
    each rendered field is replaced as a whole. The API server sets its defaults again. Labels and
    annotations of others stay, except records of what is intercepted.
    """
    operations = list(_replacements(live, wanted)) if key.kind.name not in SHARED else []
    rendered = wanted["metadata"].get("annotations") or {}
    for name in live["metadata"].get("annotations") or {}:
        if _is_stray(name, rendered):
            operations.append({"op": "remove", "path": f"/metadata/annotations/{pointer(name)}"})
    if not operations:
        return []
    version = live["metadata"]["resourceVersion"]
    return [{"op": "add", "path": "/metadata/resourceVersion", "value": version}, *operations]


def is_record(annotation: str) -> bool:
    """Return whether an annotation records what an installation intercepts, and how."""
    return annotation.startswith(names.INTERCEPTS) or annotation in (*LIMITS, names.FAILS_OPEN)


def _is_stray(annotation: str, rendered: Mapping[str, str]) -> bool:
    return is_record(annotation) and annotation not in rendered


def _replacements(live: Json, wanted: Mapping[str, Any]) -> Iterator[Json]:
    fields = [field for field in wanted if field not in _IDENTITY]
    for field in fields:
        value = wanted[field]
        if field == "webhooks":
            value = restored_entries(live.get(field) or (), value)
        if live.get(field) != value:
            yield {"op": "add", "path": f"/{field}", "value": value}
    # An object without any rendered field, such as a ServiceAccount, is filled by others.
    for field in live if fields else ():
        if field not in fields and field not in _IDENTITY:
            yield {"op": "remove", "path": f"/{field}"}


def restored_entries(live: Sequence[Json], wanted: Sequence[Json]) -> list[Json]:
    """Return the live entries of a configuration as they are wanted, each with its caBundle.

    Entries of others stay. An entry of ours gets no rules before it has a caBundle, and one that is
    not wanted is left out.
    """
    by_name = {entry["name"]: entry for entry in wanted}
    entries = []
    for entry in live:
        if rendered := by_name.get(entry["name"]):
            bundle = entry["clientConfig"].get("caBundle")
            client = {**({"caBundle": bundle} if bundle else {}), **rendered["clientConfig"]}
            rules = rendered["rules"] if client.get("caBundle") else []
            entries.append({**rendered, "clientConfig": client, "rules": rules})
        elif not entry["name"].endswith(OWN_SUFFIX):
            entries.append(entry)
    return entries
