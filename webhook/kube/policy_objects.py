"""The policies, classes and exceptions that a cluster holds: read once, or watched."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.kube.events import key_of
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.kube.client import Client

GROUP: Final = f"/apis/{names.API_VERSION}"
KINDS: Final[Mapping[str, str]] = {
    names.PLACEMENT_POLICIES: "PlacementPolicy",
    names.CAPACITY_CLASSES: "CapacityClass",
    names.PLACEMENT_EXCEPTIONS: "PlacementException",
}
# A cluster that was installed before there were any does without: it has no exceptions.
OPTIONAL: Final = frozenset({names.PLACEMENT_EXCEPTIONS})
# Seconds, about: definitions often come a moment after those who look for them.
_LONGEST_PAUSE: Final = 5.0
# Seconds between two looks at whether a definition is there: until it is known, and after that.
_LOOK: Final = (0.5, 30.0)


class _Watched(NamedTuple):
    resource: str
    cache: Cache[bytes]
    reflector: Reflector[bytes]


class PolicyObjects:
    """All collections. `run()` keeps them current, and must go on all the time.

    Objects are remembered as JSON text of what a policy set is made of: name, and all but the
    status. What else the API server and others write on them is no change. A collection in OPTIONAL
    that the cluster does not define is an empty one.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._absent: frozenset[str] = frozenset()
        self._all = tuple(_watched(client, resource, clock) for resource in KINDS)

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watched in self._all:
                group.create_task(watched.reflector.run())
                if watched.resource in OPTIONAL:
                    group.create_task(self._do_without(watched))
        raise AssertionError("reflectors run until they are cancelled")

    async def _do_without(self, watched: _Watched) -> NoReturn:
        """Take an empty list where the cluster does not define the collection.

        Not the refusal tells: whoever may not list what is not there is told that he may not.
        """
        while True:
            if watched.reflector.last_error is None:
                self._absent -= {watched.resource}
            else:
                await self._look_for(watched)
            await asyncio.sleep(_LOOK[watched.cache.synced])

    async def _look_for(self, watched: _Watched) -> None:
        try:
            there = watched.resource in await self._verbs()
        except ClusterError:
            return
        if there:
            self._absent -= {watched.resource}
            return
        self._absent |= {watched.resource}
        watched.cache.touch()
        if not watched.cache.synced:
            watched.cache.replace({})

    @property
    def caches(self) -> Mapping[str, Cache[bytes]]:
        """What is remembered, by resource."""
        return {watched.resource: watched.cache for watched in self._all}

    @property
    def synced(self) -> bool:
        """Whether all have been listed."""
        return all(watched.cache.synced for watched in self._all)

    async def wait_synced(self) -> None:
        """Return once `synced`."""
        for watched in self._all:
            await watched.cache.wait_synced()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of an object."""
        for watched in self._all:
            watched.cache.subscribe(lambda _change: listener())

    def objects(self) -> dict[str, bytes]:
        """Every object's text, by resource and name: `placementpolicies/spot`."""
        return {
            f"{watched.resource}/{name}": text
            for watched in self._all
            for name, text in watched.cache.items().items()
        }

    def trouble(self) -> str:
        """Why the API server tells nothing of a collection, with the cure; "" if it does."""
        found = (
            _absence(watched.resource)
            if watched.resource in self._absent
            else with_cure(watched.resource, watched.reflector.last_error)
            for watched in self._all
            if watched.reflector.last_error
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


def _watched(client: Client, resource: str, clock: Callable[[], float]) -> _Watched:
    cache = Cache(_keep(resource), clock=clock)
    path = f"{GROUP}/{resource}"
    reflector = Reflector(client, path, cache, longest=_LONGEST_PAUSE, clock=clock)
    return _Watched(resource, cache, reflector)


def _keep(resource: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda seen: text_of(resource, seen)


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
    keep = _keep(resource)
    return lambda seen: (f"{resource}/{key_of(seen)}", keep(seen))


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
        return f"{error}; give this account list and watch of {', '.join(KINDS)} in {names.GROUP}"
    return str(error)
