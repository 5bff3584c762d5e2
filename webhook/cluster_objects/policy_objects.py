"""Policies, classes, exceptions and sources of a cluster: read once or watched."""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import orjson

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.backoff import POLICY_WATCH_DELAYS
from webhook.errors import ClusterError
from webhook.kube.cache import Cache, Change, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.watches import Watches

T = TypeVar("T")

KINDS: Final = {resource: kind for kind, resource in names.POLICY_RESOURCES.items()}
# Clusters with an older installation do not define them.
OPTIONAL: Final = frozenset({names.PLACEMENT_EXCEPTIONS, names.RUN_SOURCES})


def objects_of(resource: str) -> CollectionPath:
    """Return the path of all objects of one of KINDS."""
    return CollectionPath(names.API_VERSION, resource)


class PolicyObjects(Generic[T]):
    """All policy collections, each watched.

    `keep` converts a resource and a raw object to the cached value. With `text_of`, this is the
    JSON text that a policy set reads, so other changes of the object are ignored. A collection in
    OPTIONAL that the cluster does not define is empty.
    """

    def __init__(
        self,
        watches: Watches,
        keep: Callable[[str, dict[str, Any]], T],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = watches.client
        # By resource.
        self.caches: Mapping[str, Cache[T]] = {
            resource: Cache(partial(keep, resource), clock=clock) for resource in KINDS
        }
        self._watches = {
            resource: watches.add(
                objects_of(resource),
                cache,
                required=resource not in OPTIONAL,
                empty_if_undefined=True,
                delays=POLICY_WATCH_DELAYS,
            )
            for resource, cache in self.caches.items()
        }

    @property
    def synced(self) -> bool:
        """True if all collections are listed."""
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
        """Return the cached value of every object, by resource/name: `placementpolicies/spot`."""
        return {
            f"{resource}/{name}": kept
            for resource, cache in self.caches.items()
            for name, kept in cache.items().items()
        }

    def known(self) -> Mapping[str, T] | None:
        """Return the same; None while a collection cannot be read."""
        return None if not self.synced or self.trouble() else self.objects()

    async def live(self) -> Mapping[str, bytes]:
        """Return every object's text, read from the API now. Raises ClusterError."""
        return await read_objects(self._client)

    def trouble(self) -> str:
        """Return why a collection cannot be read, with the cure; "" if all can be read."""
        found = (
            _undefined(resource, ", so there are none; to have them")
            if watch.undefined
            else with_cure(resource, watch.last_error)
            for resource, watch in self._watches.items()
            if watch.last_error
        )
        return "; ".join(dict.fromkeys(found))

    async def undefined(self) -> str:
        """Return the required resources that are not defined, or are being deleted; or "".

        Deleting a definition deletes all of its objects, one by one. In the meantime no object can
        be created, and discovery shows this (apiextensions-apiserver,
        customresource_discovery_controller.go). Raises ClusterError.
        """
        verbs = await self._verbs()
        needed = [resource for resource in KINDS if resource not in OPTIONAL]
        missing = [resource for resource in needed if "create" not in verbs.get(resource, ())]
        return ", ".join(f"{resource}.{names.GROUP}" for resource in missing)

    async def _verbs(self) -> Mapping[str, Sequence[str]]:
        """Return the verbs of each resource from discovery, which every client may read."""
        found = await self._client.resources(ApiPath.of_version(names.API_VERSION))
        return {str(resource.get("name")): resource.get("verbs") or () for resource in found}


async def read_objects(client: Client) -> dict[str, bytes]:
    """Read every object's current text, by resource and name: `placementpolicies/spot`.

    Raises ClusterError, with the cure if the cluster lacks the kinds or the right to read them. A
    kind in OPTIONAL that the cluster does not define has no objects.
    """
    objects: dict[str, bytes] = {}
    for resource in KINDS:
        try:
            listing = await client.list(objects_of(resource), _entry(resource))
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


def text_of(resource: str, raw: dict[str, Any]) -> bytes:
    """Return the part of an object that a policy set reads, with the kind that lists omit."""
    kept = {
        **raw,
        "apiVersion": names.API_VERSION,
        "kind": KINDS[resource],
        "metadata": {"name": raw["metadata"]["name"]},
    }
    kept.pop("status", None)
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)


def _entry(resource: str) -> Callable[[dict[str, Any]], tuple[str, bytes]]:
    return lambda raw: (f"{resource}/{key_of(raw)}", text_of(resource, raw))


def _undefined(resource: str, cure: str) -> str:
    definition = f"{resource}.{names.GROUP}"
    apply = f"kubectl apply -f manifests/crds/{definition}.yaml"
    return f"the cluster does not know {definition}{cure}: {apply}"


def with_cure(resource: str, error: ClusterError) -> str:
    """Return why a collection cannot be read, and the cure."""
    if error.status == HTTPStatus.NOT_FOUND:
        return _undefined(resource, "; give it the definition")
    if error.status == HTTPStatus.FORBIDDEN:
        return (
            f"{error}; give this account list and watch of {', '.join(KINDS)} in {names.GROUP}, "
            f"as the ClusterRole {names.POLICIES_VIEW} does"
        )
    return str(error)
