"""Read and write the engine's object of a delegated Run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.controller.action_executor import Done
from webhook.controller.engine_pods import find_root, read_link, read_pod
from webhook.controller.owned_objects import WORKLOAD
from webhook.controller.refusals import backend_rights, name_taken, refusal
from webhook.errors import ClusterError, NotLeading
from webhook.recent import Recent
from webhook.run import observation
from webhook.run.actions import (
    CreateEngineObject,
    DeleteEngineObject,
    DeleteRun,
    SuspendEngineObject,
)
from webhook.run.backends.engine_object import render_delegated
from webhook.run.backends.engines import OwnerSource
from webhook.run.controller_reference import controller_of, owner_uid
from webhook.run.delegated import reconcile_delegated
from webhook.run.engine_report import (
    describe_edits,
    describe_failed_write,
    pause_of_events,
)
from webhook.run.observed import EngineObserved, Refusal
from webhook.times import elapsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webhook.api_paths import ObjectPath
    from webhook.controller.engine_pods import Link
    from webhook.controller.engines import Engines, Watched
    from webhook.controller.node_health import Nodes
    from webhook.controller.owned_objects import Objects
    from webhook.controller.refusals import Refusals
    from webhook.kube.client import Client
    from webhook.kube.writer import Writer
    from webhook.run.actions import Action, Outcome
    from webhook.run.backends.engines import Engine
    from webhook.run.model import Run
    from webhook.run.observed import EngineEvent, EngineObject, OwnedPod

# Without the kind's group the API server answers a plain 404; with it, a Status with these words.
_NO_KIND: Final = "could not find the requested resource"
# The field in the answer to a patch of an object that has another uid.
_OTHER_UID: Final = "metadata.uid"
# Versions of objects of which is kept what others changed.
_MOST_EDITS: Final = 10_000
# Objects of which the Events that were read last are kept.
_MOST_READ: Final = 1_000
_STRICT: Final = {"fieldValidation": "Strict"}


class Delegation:
    """The engine's objects of Runs on the API server.

    Every call raises ClusterError for an unavailable or failing API server.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        engines: Engines,
        nodes: Nodes,
        objects: Objects,
        refusals: Refusals,
    ) -> None:
        self._client = client
        self._writer = writer
        self._engines = engines
        self._nodes = nodes
        self._objects = objects
        self._refusals = refusals
        self._edits: Recent[tuple[str, int], str] = Recent(_MOST_EDITS)
        # By the object's uid: until when they are not read again, and the Events.
        self._events: Recent[str, tuple[datetime, tuple[EngineEvent, ...]]] = Recent(_MOST_READ)

    async def choose(self, key: str) -> Engine:
        """As `Engines.choose`."""
        return await self._engines.choose(key)

    async def decide(
        self, run: Run, key: str, engine: Engine, now: datetime
    ) -> tuple[EngineObserved, Outcome] | None:
        """Return what was observed and the outcome; None while the first list is under way."""
        watched = self._engines.watched(key)
        if watched is None or (not watched.synced and self._engines.is_young(watched)):
            return None
        observed = (
            self._cached(run, watched) if watched.synced else await self._live(run, engine, watched)
        )
        outcome = reconcile_delegated(run, engine, observed, now)
        if outcome.look_up:
            observed = await self._live(run, engine, watched)
            outcome = reconcile_delegated(run, engine, observed, now)
        if outcome.look_up_events and observed.object:
            events = await self._events_of(run, engine, observed.object, now)
            observed = replace(observed, events=events)
            outcome = reconcile_delegated(run, engine, observed, now)
        return observed, outcome

    async def _events_of(
        self, run: Run, engine: Engine, engine_object: EngineObject, now: datetime
    ) -> tuple[EngineEvent, ...]:
        """As `_read_events`; what was read stays for a pause, however often the run changes."""
        entry = self._events.get(engine_object.uid)
        if entry and now < entry[0]:
            return entry[1]
        events = await self._read_events(run, engine, engine_object)
        pause = timedelta(seconds=pause_of_events(elapsed(engine_object.created, now)))
        self._events.put(engine_object.uid, (now + pause, events))
        return events

    async def _read_events(
        self, run: Run, engine: Engine, engine_object: EngineObject
    ) -> tuple[EngineEvent, ...]:
        """Return warnings about the object and what is between it and its pods, the latest last.

        What fails to create something reports it: the operator on its object, and others on the
        Jobs or ReplicaSets between.
        """
        events = await self._list_events(run.namespace, f"involvedObject.uid={engine_object.uid}")
        owners, levels = engine.pods.owners, len(engine.pods.owners)
        links = await self._read_links(run, engine, engine_object) if owners else {}
        for owner in owners:
            listed = await self._list_events(run.namespace, f"involvedObject.kind={owner.kind}")
            events += [
                event
                for event in listed
                if find_root(links, event.about, levels) == engine_object.uid
            ]
        return tuple(sorted(events, key=lambda event: event.seen))

    async def _list_events(self, namespace: str, fields: str) -> list[EngineEvent]:
        try:
            listing = await self._client.list(
                CollectionPath("v1", "events", namespace),
                observation.engine_event,
                query={"fieldSelector": f"{fields},type=Warning"},
            )
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            # An installation of an earlier version: the Run reports what the object shows.
            return []
        return [event for event in listing.items if event]

    def forget_counted(self, run: Run, key: str, observed: EngineObserved) -> None:
        """Forget the deleted pods that the stored status has counted."""
        watched = self._engines.watched(key)
        if watched and observed.object:
            counted = {uid for role in run.status.replicas.values() for uid in role.counted_uids}
            watched.pods.forget(observed.object.uid, counted)

    def _cached(self, run: Run, watched: Watched) -> EngineObserved:
        engine_object = watched.find(run.namespace, run.metadata.uid)
        pods = watched.pods.of(run.namespace, engine_object.uid) if engine_object else ()
        return self._observed(run, watched, engine_object, pods)

    async def _live(self, run: Run, engine: Engine, watched: Watched) -> EngineObserved:
        engine_object = await self._read(run, engine, watched)
        if engine_object is None:
            left = await self._left(run, engine)
            return replace(self._observed(run, watched, None, (), links={}), left=left)
        selector = f"{engine.pods.label}={engine_object.name}"
        listing = await self._client.list(
            CollectionPath("v1", "pods", run.namespace),
            lambda raw: read_pod(engine.pods, raw),
            query={"labelSelector": selector},
        )
        # After the pods: an engine deletes what is above a pod first.
        links = await self._read_links(run, engine, engine_object)
        levels = len(engine.pods.owners)
        pods = tuple(
            watched.pods.judge_live(run.namespace, pod, engine_object.uid, links)
            for pod in listing.items
            if pod and find_root(links, pod.run_uid, levels) == engine_object.uid
        )
        return self._observed(run, watched, engine_object, pods, links=links)

    async def _left(self, run: Run, engine: Engine) -> str:
        """Return what is left of a deleted object: the first of what is above its pods, or a pod.

        What has no owner stays: engines adopt it, or report it.
        """
        source, of_run = engine.pods, f"{names.RUN_UID}={run.metadata.uid}"
        pods = OwnerSource("v1", "pods", "pod", source.label)
        for owner_source in (*filter(lambda owner: owner.labelled, source.owners), pods):
            listing = await self._client.list(
                CollectionPath(owner_source.api_version, owner_source.resource, run.namespace),
                lambda raw: raw["metadata"]["name"] if controller_of(raw) else None,
                query={"labelSelector": f"{owner_source.label}={run.name},{of_run}"},
            )
            object_name = next(filter(None, listing.items), None)
            if object_name:
                return f"{owner_source.kind} {object_name}"
        return ""

    async def _read_links(
        self, run: Run, engine: Engine, engine_object: EngineObject
    ) -> dict[str, Link]:
        """Return the objects between the engine's object and its pods, by uid."""
        links: dict[str, Link] = {}
        for owner in engine.pods.owners:
            listing = await self._client.list(
                CollectionPath(owner.api_version, owner.resource, run.namespace),
                read_link,
                query={"labelSelector": f"{owner.label}={engine_object.name}"},
            )
            links.update((link.uid, link) for link in listing.items if link)
        return links

    def _observed(
        self,
        run: Run,
        watched: Watched,
        engine_object: EngineObject | None,
        pods: tuple[OwnedPod, ...],
        *,
        links: Mapping[str, Link] | None = None,
    ) -> EngineObserved:
        """Return what was observed; links: those of a live read."""
        pod_uids = {pod.uid for pod in pods}
        gone = watched.pods.gone(engine_object.uid, links) if engine_object else ()
        return EngineObserved(
            object=engine_object,
            pods=pods,
            gone=tuple(pod for pod in gone if pod.uid not in pod_uids),
            nodes=self._nodes.health({pod.node for pod in pods if pod.node}),
            refusals=self._refusals.refusals_of(run.metadata.uid),
            between=not (engine_object and watched.engine.needs_owners)
            or watched.pods.has_owner(engine_object.uid, links),
            fresh=links is not None,
            edits=self._describe_edits(run, watched.engine, engine_object) if engine_object else "",
        )

    def _describe_edits(self, run: Run, engine: Engine, engine_object: EngineObject) -> str:
        """As `describe_edits`; comparing costs a rendering, so each version is compared once.

        Of an idle run nobody reports them.
        """
        if run.status.ended or run.spec.suspend or run.metadata.deletion_timestamp:
            return ""
        key = (engine_object.uid, hash(engine_object.templates))
        return self._edits.get_or_make(key, lambda: describe_edits(run, engine, engine_object))

    async def _read(self, run: Run, engine: Engine, watched: Watched) -> EngineObject | None:
        path = _path(run, engine)
        try:
            raw = await self._client.get(path)
        except ClusterError as error:
            # Without the definition, or the right to read, the creation reports why.
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return None
        if owner_uid(raw) != run.metadata.uid:
            return None
        return watched.learn(raw)

    async def carry_out(
        self, run: Run, key: str, engine: Engine, actions: Sequence[Action]
    ) -> Done:
        """Carry out the actions. API errors are returned in Done.error."""
        done = Done()
        for action in actions:
            try:
                match action:
                    case CreateEngineObject():
                        await self._create(run, key, engine, done)
                    case SuspendEngineObject(uid, suspend, queued) if queued and (
                        workload := await self._workload_of(run, uid)
                    ):
                        done.acted = await self._activate(workload, active=not suspend)
                    case SuspendEngineObject(uid, suspend):
                        await self._suspend(run, key, engine, uid, suspend=suspend)
                        done.acted = True
                    case DeleteEngineObject(uid):
                        await self._delete(run, engine, uid)
                        done.acted = True
                    case DeleteRun():
                        await self._objects.delete_run(run)
            except (ClusterError, NotLeading) as error:
                done.error = error
                if isinstance(error, ClusterError):
                    refused = engine_refusal(run, engine, error)
                    done.failed = describe_failed_write(run, engine, action, refused)
                break
        return done

    async def _create(self, run: Run, key: str, engine: Engine, done: Done) -> None:
        """Create the object, unless an earlier refusal delays it. Raises InvalidRun."""
        if (pause := self._refusals.pause(run.metadata.uid, run.name)) > 0:
            done.wait(pause)
            return
        manifest = render_delegated(run, engine)
        refused = None
        try:
            raw = await self._writer.create(_collection(run, engine), manifest, query=_STRICT)
        except ClusterError as error:
            if error.status == HTTPStatus.CONFLICT and error.reason == "AlreadyExists":
                raw = await self._client.get(_path(run, engine))
                if owner_uid(raw) != run.metadata.uid:
                    refused = name_taken(engine.kind, raw)
            elif (refused := engine_refusal(run, engine, error)) is None:
                raise
        if refused:
            done.refused.append(refused)
            return
        if watched := self._engines.watched(key):
            watched.learn(raw)
        done.made.add(run.name)
        done.acted = True

    async def _suspend(
        self, run: Run, key: str, engine: Engine, uid: str, *, suspend: bool
    ) -> None:
        """Set the field that suspends the object, if it has this uid.

        The answer is cached at once: until the watch delivers it, the object would look as if
        another client had undone the change.
        """
        body: Any = suspend
        for step in reversed(engine.suspend.split(".")):
            body = {step: body}
        patch = {"metadata": {"uid": uid}, "spec": body}
        try:
            raw = await self._writer.patch(_path(run, engine), patch, "merge")
        except ClusterError as error:
            # Another object has the name, or none: the watch delivers what is there.
            if error.status != HTTPStatus.NOT_FOUND and _OTHER_UID not in (error.words or ""):
                raise
        else:
            if watched := self._engines.watched(key):
                watched.learn(raw)

    async def _workload_of(self, run: Run, uid: str) -> dict[str, Any] | None:
        """Return the Workload by which Kueue holds the object with this uid; None without one.

        An object that is not finished has one at most (EnsureOneWorkload of Kueue's jobframework).
        """

        def owned(raw: dict[str, Any]) -> dict[str, Any] | None:
            controller = controller_of(raw)
            return raw if controller and controller["uid"] == uid else None

        try:
            listing = await self._client.list(
                WORKLOAD.path(run.namespace),
                owned,
                query={"labelSelector": f"{names.KUEUE_JOB_UID}={uid}"},
            )
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        return next(filter(None, listing.items), None)

    async def _activate(self, workload: dict[str, Any], *, active: bool) -> bool:
        """Let Kueue admit the Workload, or evict it and suspend its object; False if it does so.

        Kueue would resume an object that is suspended without it.
        """
        if workload["spec"].get("active", True) == active:
            return False
        metadata = workload["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "spec": {"active": active}}
        path = WORKLOAD.path(metadata["namespace"]).path_of(metadata["name"])
        await self._writer.patch(path, patch, "merge")
        return True

    async def _delete(self, run: Run, engine: Engine, uid: str) -> None:
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        try:
            await self._writer.delete(_path(run, engine), options)
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise


def _collection(run: Run, engine: Engine) -> CollectionPath:
    return CollectionPath(engine.api_version, engine.resource, run.namespace)


def _path(run: Run, engine: Engine) -> ObjectPath:
    return _collection(run, engine).path_of(run.name)


def engine_refusal(run: Run, engine: Engine, error: ClusterError) -> Refusal | None:
    """Return the refusal behind a failed creation; None for a failure of the API server."""
    words = error.why
    if error.status == HTTPStatus.NOT_FOUND and (not error.words or _NO_KIND in words):
        return Refusal(
            run.name,
            "BackendMissing",
            f"the cluster has no {engine.kind} of {engine.api_version}: install "
            f"{engine.operator}, or create the Run again with backend native",
        )
    rejection = refusal(run.name, error)
    if rejection is None:
        return None
    for resource, backend in ((engine.resource, engine.backend), (WORKLOAD.resource, "kueue")):
        if rejection.reason == "Forbidden" and resource in words:
            cure = f"give the controller the rights of backend {backend}: {backend_rights(backend)}"
            return rejection._replace(message=f"{words}; {cure}")
    if rejection.reason in ("Invalid", "FailedCreate"):
        return rejection._replace(reason="Rejected", message=f"{engine.kind}: {words}")
    return rejection
