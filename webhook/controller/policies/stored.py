"""The objects that policies are written in, as the controller remembers them."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from webhook.kube.cache import Cache, Change
from webhook.kube.policy_objects import GROUP, KINDS, OPTIONAL, text_of, with_cure
from webhook.kube.reflector import Reflector
from webhook.policy.reporting.seen import MODELS, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.kube.client import Client
    from webhook.policy.status_model import ObjectStatus


# Seconds between two looks at whether all is known by now.
_LOOK: Final = 0.1


class Stored(NamedTuple):
    """One object, and the version that it was read at."""

    seen: Seen
    version: str

    @property
    def path(self) -> str:
        """Where its status is written."""
        return f"{GROUP}/{self.seen.resource}/{self.seen.name}/status"


def stored(resource: str, raw: dict[str, Any]) -> Stored:
    """Remember a raw object, as an answer, a list or a watch gives it."""
    metadata = raw["metadata"]
    seen = Seen(
        resource,
        metadata["name"],
        metadata["uid"],
        metadata.get("generation") or 0,
        text_of(resource, raw),
        _status(resource, raw.get("status")),
    )
    return Stored(seen, metadata["resourceVersion"])


def _status(resource: str, raw: object) -> ObjectStatus:
    model = MODELS[resource]
    try:
        return model.model_validate(raw or {})
    except ValidationError:
        # Somebody else wrote it: it is written anew.
        return model()


class StoredObjects:
    """All of them, by a watch of each collection. `run()` keeps them current."""

    def __init__(self, client: Client) -> None:
        self._caches = {resource: Cache(_keep(resource)) for resource in KINDS}
        self._reflectors = {
            resource: Reflector(client, f"{GROUP}/{resource}", cache)
            for resource, cache in self._caches.items()
        }

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())

    async def wait_synced(self) -> None:
        """Return once every collection has been listed that the cluster has, or must have."""
        while not all(map(self._known, KINDS)):  # noqa: ASYNC110 (a refusal is no event)
            await asyncio.sleep(_LOOK)

    def _known(self, resource: str) -> bool:
        error = self._reflectors[resource].last_error
        absent = error is not None and error.status == HTTPStatus.NOT_FOUND
        return self._caches[resource].synced or (resource in OPTIONAL and absent)

    def subscribe(self, listener: Callable[[Change[Stored]], None]) -> None:
        """Call `listener` after each change, of a status too."""
        for cache in self._caches.values():
            cache.subscribe(listener)

    def all(self) -> dict[str, Stored]:
        """Every object, by place: `placementpolicies/spot`."""
        return {
            each.seen.place: each
            for cache in self._caches.values()
            for each in cache.items().values()
        }

    def get(self, resource: str, name: str) -> Stored | None:
        """One object; None if there is none."""
        return self._caches[resource].get(name)

    def offer(self, resource: str, raw: dict[str, Any]) -> None:
        """Take what the API server answered to a write."""
        new = stored(resource, raw)
        self._caches[resource].offer(new.seen.name, new, new.version)

    def trouble(self) -> str:
        """Why the API server tells nothing of a collection, with the cure; "" if it does."""
        found = (
            with_cure(resource, reflector.last_error)
            for resource, reflector in self._reflectors.items()
            if reflector.last_error
        )
        return "; ".join(dict.fromkeys(found))


def _keep(resource: str) -> Callable[[dict[str, Any]], Stored]:
    return lambda raw: stored(resource, raw)
