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
from webhook.cluster_objects.served_definitions import (
    CURE,
    FORBIDDEN,
    OLDER_CURE,
    ServedDefinition,
    ServedDefinitions,
    differing,
    newer_objects,
    older_than,
    reports,
)
from webhook.errors import ClusterError, PassOver
from webhook.kube.cache import Cache, Change, key_of
from webhook.policy.crd.definitions import custom_resource_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.watches import Watch, Watches

T = TypeVar("T")

KINDS: Final = {resource: kind for kind, resource in names.POLICY_RESOURCES.items()}
# Seconds from a change of a definition until the API server certainly reads objects by it.
DEFINITION_SETTLES: Final = 2.0
_CHANGED: Final = "a definition has changed: all objects are being listed again"
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
        self._all_watches = watches
        self._clock = clock
        self._definitions = ServedDefinitions(
            watches.client, lambda: custom_resource_definitions().values()
        )
        # By name: of the definition by which the objects were listed; None if that is not known.
        self._identities: dict[str, object] = {}
        # Own definitions and those of the cluster that differ, by name.
        self._differing: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        # When to list all objects again; then by watch, how often it had listed before that.
        self._list_at: float | None = None
        self._listed: Mapping[Watch[T], int] = {}
        self.doubted = ""
        self.unchecked = ""
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
        """Return the same; None while a collection cannot be read, or is in doubt."""
        doubtful = not self.synced or self.trouble() or self.doubted
        return None if doubtful else self.objects()

    async def live(self) -> Mapping[str, bytes]:
        """Return every object's text, read from the API now. Raises ClusterError."""
        return await read_objects(self._client)

    def trouble(self) -> str:
        """Return why a collection cannot be read, with the cure; "" if all can be read."""
        troubles = (
            _undefined(resource, ", so there are none; to have them")
            if watch.undefined
            else with_cure(resource, watch.last_error)
            for resource, watch in self._watches.items()
            if watch.last_error
        )
        return "; ".join(dict.fromkeys(troubles))

    async def dropped(self, resource: str) -> str:
        """Return which fields the API server drops now from one of KINDS, with the cure; or "".

        Raises ClusterError. Without the right to read definitions it is not known of any.
        """
        try:
            served = await self._definitions.read_one(f"{resource}.{names.GROUP}")
        except ClusterError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return ""
            raise
        return _dropped({f"{resource}.{names.GROUP}": served})

    async def doubt(self) -> str:
        """Return why the objects that are cached may lack fields; "" if they are whole.

        To be asked after `objects`, about what it returned. An older definition has the API server
        drop fields from what it reads, and no watch tells of it: objects keep their versions. So
        objects are relied on while no definition drops a field, and once all were listed after the
        last change of a definition. Raises ClusterError.
        """
        try:
            self.doubted = await self._check_definitions() or self._list_again()
        except ClusterError:
            self.doubted = "the definitions cannot be read"
            raise
        return self.doubted

    async def _check_definitions(self) -> str:
        try:
            served = await self._definitions.read()
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            self.unchecked = FORBIDDEN
            return ""
        self.unchecked = ""
        self._differing = differing(served)
        if text := _dropped(served):
            # Nothing that is read now is whole.
            self._identities = dict.fromkeys(served)
            return text
        identities = {
            name: definition.identity for name, definition in served.items() if definition.identity
        }
        # One that is new brings new objects alone; of one that is gone, others report the loss.
        if any(self._identities.get(name, new) != new for name, new in identities.items()):
            self._list_at, self._listed = self._clock() + DEFINITION_SETTLES, {}
        self._identities |= identities
        return ""

    def _list_again(self) -> str:
        if self._list_at is not None:
            if self._clock() >= self._list_at:
                watches = [*self._watches.values()]
                self._listed = {watch: watch.lists for watch in watches if not watch.undefined}
                self._list_at = None
                self._all_watches.restart(*watches)
            return _CHANGED
        if not self._listed:
            return ""
        if all(watch.lists > before for watch, before in self._listed.items()):
            # The caller has what was there before that.
            self._listed = {}
        return _CHANGED

    def newer(self, objects: Mapping[str, bytes]) -> Mapping[str, str]:
        """Return what objects have that this version does not know and their definition does, by
        place, as of the last call of `doubt`."""
        return newer_objects(self._differing, objects)

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
        resources = await self._client.resources(ApiPath.of_version(names.API_VERSION))
        return {str(resource.get("name")): resource.get("verbs") or () for resource in resources}


def _dropped(served: Mapping[str, ServedDefinition]) -> str:
    report_by_name = reports(
        {name: definition for name, definition in served.items() if definition.drops}
    )
    return f"{'; '.join(report_by_name.values())}; {CURE}" if report_by_name else ""


async def read_whole_objects(client: Client) -> dict[str, bytes]:
    """As `read_objects`, for an answer about them: refused while the API server drops fields, and
    by a version that is older than the objects.

    Raises ClusterError, also then. Without the right to read definitions it is not known.
    """
    objects = await read_objects(client)
    definitions = ServedDefinitions(client, lambda: custom_resource_definitions().values())
    with PassOver(HTTPStatus.FORBIDDEN):
        served = await definitions.read()
        if text := _dropped(served):
            raise ClusterError(text)
        if newer := newer_objects(differing(served), objects):
            raise ClusterError(f"{older_than(newer)}; {OLDER_CURE}")
    return objects


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
