"""The policies, classes and exceptions that a cluster holds: read once, or watched."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import orjson

from webhook import names
from webhook.backoff import POLICY_WATCH_DELAYS
from webhook.errors import ClusterError
from webhook.kube.cache import Cache, Change
from webhook.kube.events import key_of
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.kube.client import Client

T = TypeVar("T")

GROUP: Final = f"/apis/{names.API_VERSION}"
KINDS: Final = {resource: kind for kind, resource in names.POLICY_RESOURCES.items()}
# A cluster that was installed before there were any does without: it has no exceptions.
OPTIONAL: Final = frozenset({names.PLACEMENT_EXCEPTIONS})
# Seconds between two looks at whether a definition is there: until it is known, and after that.
_LOOK: Final = (0.5, 30.0)


class PolicyObjects(Generic[T]):
    """All collections. `run()` keeps them current, and must go on all the time.

    `keep` makes of a resource and a raw object what is remembered: with `text_of`, JSON text of
    what a policy set is made of, and what else the API server and others write on it is no change.
    A collection in OPTIONAL that the cluster does not define is an empty one.
    """

    def __init__(
        self,
        client: Client,
        keep: Callable[[str, dict[str, Any]], T],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._absent: frozenset[str] = frozenset()
        # What is remembered, by resource.
        self.caches: Mapping[str, Cache[T]] = {
            resource: Cache(partial(keep, resource), clock=clock) for resource in KINDS
        }
        self._reflectors = {
            resource: Reflector(
                client, f"{GROUP}/{resource}", cache, delays=POLICY_WATCH_DELAYS, clock=clock
            )
            for resource, cache in self.caches.items()
        }

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())
            for resource in OPTIONAL:
                group.create_task(self._do_without(resource))
        raise AssertionError("reflectors run until they are cancelled")

    async def _do_without(self, resource: str) -> NoReturn:
        """Take an empty list where the cluster does not define the collection.

        Not the refusal tells: whoever may not list what is not there is told that he may not.
        """
        while True:
            if self._reflectors[resource].last_error is None:
                self._absent -= {resource}
            else:
                await self._look_for(resource)
            await asyncio.sleep(_LOOK[self.caches[resource].synced])

    async def _look_for(self, resource: str) -> None:
        try:
            there = resource in await self._verbs()
        except ClusterError:
            return
        if there:
            self._absent -= {resource}
            return
        self._absent |= {resource}
        self.caches[resource].touch()
        if not self.caches[resource].synced:
            self.caches[resource].replace({})

    @property
    def synced(self) -> bool:
        """Whether all have been listed."""
        return all(cache.synced for cache in self.caches.values())

    async def wait_synced(self) -> None:
        """Return once `synced`."""
        for cache in self.caches.values():
            await cache.wait_synced()

    def subscribe(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` after each change of an object."""
        for cache in self.caches.values():
            cache.subscribe(listener)

    def objects(self) -> dict[str, T]:
        """What is remembered of every object, by resource and name: `placementpolicies/spot`."""
        return {
            f"{resource}/{name}": kept
            for resource, cache in self.caches.items()
            for name, kept in cache.items().items()
        }

    def trouble(self) -> str:
        """Why the API server tells nothing of a collection, with the cure; "" if it does."""
        found = (
            _absence(resource)
            if resource in self._absent
            else with_cure(resource, reflector.last_error)
            for resource, reflector in self._reflectors.items()
            if reflector.last_error
        )
        return "; ".join(dict.fromkeys(found))

    async def undefined(self) -> str:
        """What the cluster does not define, or is about to forget, of what it must define; or "".

        Whoever deletes a definition deletes all of its objects, one by one. While that goes on, no
        object can be created, and discovery says so
        (apiextensions-apiserver, customresource_discovery_controller.go). Raises ClusterError.
        """
        verbs = await self._verbs()
        needed = [resource for resource in KINDS if resource not in OPTIONAL]
        gone = [resource for resource in needed if "create" not in verbs.get(resource, ())]
        return ", ".join(f"{resource}.{names.GROUP}" for resource in gone)

    async def _verbs(self) -> Mapping[str, Sequence[str]]:
        """What discovery, which everybody may read, says can be done with each resource."""
        try:
            found = await self._client.get(GROUP)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found = {}
        return {each.get("name"): each.get("verbs") or () for each in found.get("resources") or ()}


async def read_objects(client: Client) -> dict[str, bytes]:
    """Every object's text as it is now, by resource and name: `placementpolicies/spot`.

    Raises ClusterError, with the cure if the cluster has no such kinds, or they may not be read.
    A kind in OPTIONAL that the cluster does not have has no objects.
    """
    objects: dict[str, bytes] = {}
    for resource in KINDS:
        try:
            listing = await client.list(f"{GROUP}/{resource}", _entry(resource))
        except ClusterError as error:
            if resource in OPTIONAL and error.status == HTTPStatus.NOT_FOUND:
                continue
            raise ClusterError(
                with_cure(resource, error),
                status=error.status,
                reason=error.reason,
                retry_after=error.retry_after,
                words=error.words,
            ) from error
        objects.update(listing.items)
    return objects


def text_of(resource: str, seen: dict[str, Any]) -> bytes:
    """What a policy set is made of, of an object; within a list it does not say what it is."""
    said = {
        **seen,
        "apiVersion": names.API_VERSION,
        "kind": KINDS[resource],
        "metadata": {"name": seen["metadata"]["name"]},
    }
    said.pop("status", None)
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS)


def _entry(resource: str) -> Callable[[dict[str, Any]], tuple[str, bytes]]:
    return lambda seen: (f"{resource}/{key_of(seen)}", text_of(resource, seen))


def _absence(resource: str) -> str:
    definition = f"{resource}.{names.GROUP}"
    return (
        f"the cluster does not know {definition}, so there are none; to have them: "
        f"kubectl apply -f manifests/crds/{definition}.yaml"
    )


def with_cure(resource: str, error: ClusterError) -> str:
    """Why a collection cannot be read, and what to do about it."""
    if error.status == HTTPStatus.NOT_FOUND:
        definition = f"{resource}.{names.GROUP}"
        return (
            f"the cluster does not know {definition}; give it the definition: "
            f"kubectl apply -f manifests/crds/{definition}.yaml"
        )
    if error.status == HTTPStatus.FORBIDDEN:
        return (
            f"{error}; give this account list and watch of {', '.join(KINDS)} in {names.GROUP}, "
            f"as the ClusterRole {names.POLICIES_VIEW} does"
        )
    return str(error)
