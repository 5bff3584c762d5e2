"""Watch the objects and pods of other engines, only those kinds that a Run uses."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.controller.engine_pods import EnginePods
from webhook.controller.informers import A_PAGE
from webhook.controller.observed_state import ByRun
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.run.backends.engines import ENGINES, VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watches
    from webhook.run.backends.engines import Engine
    from webhook.run.observed import EngineObject

# Seconds for the first list of a kind. After that its Runs are read live, such as without its
# definition.
FIRST_LIST: Final = 5.0
# Seconds from a look at which version of a kind is served to the next.
SERVED_PAUSE: Final = 60.0


class Watched:
    """The informers of one kind: its objects, and its operator's pods of Runs.

    began: when they started, on the clock; before the first complete list the caches are empty.
    """

    def __init__(
        self, watches: Watches, engine: Engine, pods: EnginePods, namespace: str, began: float
    ) -> None:
        self.engine = engine
        self.pods = pods
        self.began = began
        self.objects: Cache[EngineObject] = Cache(engine.read)
        self.by_uid: dict[str, EngineObject] = {}
        self._by_run = ByRun(self.objects, lambda engine_object: engine_object.run_uid)
        self.objects.subscribe(self._changed)
        self.watch = watches.add(
            CollectionPath(engine.api_version, engine.resource, namespace or None),
            self.objects,
            required=False,
            query={"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"},
            page_size=A_PAGE,
        )

    @property
    def synced(self) -> bool:
        """True once objects and pods are listed."""
        return self.objects.synced and self.pods.synced

    def find(self, namespace: str, uid: str) -> EngineObject | None:
        """Return the object that the Run with this uid owns."""
        return next(iter(self._by_run.values_of(namespace, uid).values()), None)

    def learn(self, raw: dict[str, Any]) -> EngineObject | None:
        """Store an object from the API server's answer, unless a newer one is cached."""
        engine_object = self.objects.keep(raw)
        metadata = raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        self.objects.offer(key, engine_object, metadata["resourceVersion"])
        return engine_object

    def _changed(self, change: Change[EngineObject]) -> None:
        if change.before:
            self.by_uid.pop(change.before.uid, None)
        if change.after:
            self.by_uid[change.after.uid] = change.after


class Engines:
    """The informers of the kinds that Runs use.

    They start with the first Run of a kind and stop with the last. `notify` is called with the uid
    of a Run whose object or pods have changed.
    """

    def __init__(
        self,
        watches: Watches,
        runs: Cache[StoredRun],
        namespace: str,
        notify: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watches = watches
        self._client = watches.client
        self._namespace = namespace
        self._notify = notify
        self._clock = clock
        self._used: Counter[str] = Counter()
        self._used_changed = asyncio.Event()
        # Until when it is not asked again, on the clock, and the engine.
        self._chosen: dict[str, tuple[float, Engine]] = {}
        self._watched: dict[str, Watched] = {}
        self._pods: dict[str, EnginePods] = {}
        runs.subscribe(self._run_changed)

    async def choose(self, key: str) -> Engine:
        """Return the engine, of several the one of the version that the cluster serves.

        Raises ClusterError if the API server does not say.
        """
        until, engine = self._chosen.get(key, (0.0, ENGINES[key]))
        if key in VARIANTS and self._clock() >= until:
            served = [variant for variant in VARIANTS[key] if await self._is_served(variant)]
            engine = next(iter(served), ENGINES[key])
            self._chosen[key] = (self._clock() + SERVED_PAUSE, engine)
            if (watched := self._watched.get(key)) and watched.engine != engine:
                self._stop(key)
                self._start_and_stop()
        return engine

    async def _is_served(self, engine: Engine) -> bool:
        try:
            resource_list = await self._client.get(ApiPath.of_version(engine.api_version))
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return any(
            resource.get("name") == engine.resource
            for resource in resource_list.get("resources") or ()
        )

    def _engine(self, key: str) -> Engine:
        return self._chosen.get(key, (0.0, ENGINES[key]))[1]

    def node_changed(self, node: str) -> None:
        """Notify of the Runs whose pods are on the node."""
        for pods in self._pods.values():
            for owner in pods.owners_on(node):
                self._pods_changed(owner)

    def is_young(self, watched: Watched) -> bool:
        """Return True while the first list of the kind may soon be complete."""
        return self._clock() - watched.began < FIRST_LIST

    def watched(self, key: str) -> Watched | None:
        """Return the informers of an engine; None before they start."""
        return self._watched.get(key)

    @property
    def collections(self) -> tuple[str, ...]:
        """The resources that are watched now, and the label selectors of their pods."""
        kinds = (watched.engine.resource for watched in self._watched.values())
        return (*kinds, *self._pods)

    async def run(self) -> None:
        """Watch the kinds that are used, as they change, until cancelled."""
        while True:
            self._used_changed.clear()
            self._start_and_stop()
            await self._used_changed.wait()

    def _start_and_stop(self) -> None:
        wanted = {key for key, count in self._used.items() if count > 0}
        for key in self._watched.keys() - wanted:
            self._stop(key)
        selectors = {self._engine(key).pods.selector for key in wanted}
        for selector in self._pods.keys() - selectors:
            self._watches.remove(*self._pods.pop(selector).watches)
        for key in sorted(wanted - self._watched.keys()):
            self._start(key)

    def _start(self, key: str) -> None:
        engine = self._engine(key)
        selector = engine.pods.selector
        if selector not in self._pods:
            pods = self._pods[selector] = EnginePods(
                self._watches, engine.pods, self._namespace, self._pods_changed
            )
        pods = self._pods[selector]
        watched = Watched(self._watches, engine, pods, self._namespace, self._clock())
        watched.objects.subscribe(lambda change: self._object_changed(watched, change))
        self._watched[key] = watched

    def _stop(self, key: str) -> None:
        self._watches.remove(self._watched.pop(key).watch)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before = change.before.engine if change.before else ""
        after = change.after.engine if change.after else ""
        if before == after:
            return
        for key, by in ((before, -1), (after, 1)):
            if key:
                self._used[key] += by
        self._used_changed.set()

    def _object_changed(self, watched: Watched, change: Change[EngineObject]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            # Whatever it left behind is deleted with it.
            watched.pods.forget_all(before.uid)
        for engine_object in (before, after):
            if engine_object:
                self._notify(engine_object.run_uid)

    def _pods_changed(self, owner: str) -> None:
        for watched in self._watched.values():
            if engine_object := watched.by_uid.get(owner):
                self._notify(engine_object.run_uid)
