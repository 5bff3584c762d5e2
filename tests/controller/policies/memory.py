"""Policies in memory, and an API server that takes statuses as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from jsonpatch import JsonPatchTestFailed, apply_patch

from tests.controller.runs import refused
from webhook import names
from webhook.controller.policies.status_writer import Stored, StoredObjects, stored
from webhook.kube.cache import Change
from webhook.kube.client import Client

Json = dict[str, Any]


def raw_policy(name: str, *, version: int = 5, status: Json | None = None, **spec: Any) -> Json:
    """A policy as the API server keeps it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "generation": 1,
            "resourceVersion": str(version),
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"defaults": {"nodeSelector": {"pool": "a"}}, **spec},
        **({"status": status} if status else {}),
    }


class Cluster:
    """The objects as StoredObjects has them, and what kube.writer.Writer writes of them."""

    def __init__(self, *policies: Json) -> None:
        self.raw = {each["metadata"]["name"]: each for each in policies}
        self.writes: list[str] = []
        self.refusals: dict[str, Exception] = {}
        self.listeners: list[Callable[[Change[Stored]], None]] = []
        self.version = 100
        self.doubtful = ""
        # What the API server reads by the definition of now; None: what is stored.
        self.reads_as: Json | None = None

    @property
    def watched(self) -> StoredObjects:
        """Itself, as what watches."""
        return cast(StoredObjects, self)

    @property
    def writer(self) -> Client:
        """Itself, as what writes."""
        return cast(Client, self)

    def subscribe(self, listener: Callable[[Change[Stored]], None]) -> None:
        self.listeners.append(listener)

    async def wait_synced(self) -> None:
        """All is known."""

    async def doubt(self) -> str:
        """What a test says of the definitions."""
        return self.doubtful

    def newer(self, _objects: Mapping[str, bytes]) -> Mapping[str, str]:
        """Nothing: the definitions are those of this version."""
        return {}

    def objects(self) -> dict[str, Stored]:
        found = (stored(names.PLACEMENT_POLICIES, each) for each in self.raw.values())
        return {each.observed.place: each for each in found}

    def get(self, resource: str, name: str) -> Stored | None:
        return stored(resource, self.raw[name]) if name in self.raw else None

    def offer(self, resource: str, raw: Json) -> None:
        assert resource == names.PLACEMENT_POLICIES
        self.put(raw)

    def put(self, raw: Json) -> None:
        name = raw["metadata"]["name"]
        before = self.get(names.PLACEMENT_POLICIES, name)
        self.raw[name] = raw
        change = Change(name, before, stored(names.PLACEMENT_POLICIES, raw))
        for listener in self.listeners:
            listener(change)

    async def patch(
        self,
        path: str,
        body: Sequence[Mapping[str, Any]],
        patch_type: Any,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        *_, name, subresource = path.split("/")
        assert (patch_type, subresource) == ("json", "status")
        assert query == {"fieldManager": names.CONTROLLER}
        self.writes.append(name)
        if name in self.refusals:
            raise self.refusals[name]
        if name not in self.raw:
            raise refused(404, "NotFound")
        raw: Json = deepcopy(self.reads_as or self.raw[name])
        before = raw["metadata"]["resourceVersion"]
        try:
            raw = apply_patch(raw, [*body])
        except JsonPatchTestFailed:
            raise refused(422, "Invalid") from None
        if raw["metadata"]["resourceVersion"] != before:
            raise refused(409, "Conflict")
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        return raw
