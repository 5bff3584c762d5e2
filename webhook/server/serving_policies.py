"""The served policies: from a folder that is polled, or from a cluster that is watched."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, NoReturn, TypeVar

from webhook.admission.policy_handler import PolicyHandler
from webhook.cluster_objects.policy_objects import KINDS, PolicyObjects, text_of
from webhook.cluster_objects.watched_objects import WebhookClasses
from webhook.errors import ClusterError, InvalidDocuments, ServingError, UnreadableInput
from webhook.judgement.set_judgement import Objects, Served, load_served
from webhook.judgement.write_judge import Judge
from webhook.metric_names import ENGINE_ERRORS, POLICY_RELOADS, REFUSED
from webhook.policy import policy_documents
from webhook.server.folder import Folder
from webhook.server.readiness import Condition
from webhook.server.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.admission.handler import Observer
    from webhook.kube.watches import Watches
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.server.folder import Signature
    from webhook.server.readiness import Parts
    from webhook.server.reload import ReloadState
    from webhook.server.settings import ServeSettings
    from webhook.server.webhook_metrics import Metrics

T = TypeVar("T")
_logger = logging.getLogger(__name__)


class Policies(NamedTuple):
    """The current set, if there is one.

    `origin` is for the log: the folder, or the resources. `written` answers reviews of writes of
    policies; None for files. `classes`: objects by kind and name that pods may name, and by which
    plugins and Kueue change pods; none without a cluster.
    """

    current: Callable[[], PolicySet | None]
    origin: Mapping[str, str]
    written: PolicyHandler | None = None
    classes: Callable[[], Mapping[str, Mapping[str, JsonObject]]] = dict


def policies_of(
    parts: Parts,
    settings: ServeSettings,
    nodes: Callable[[], Sequence[Node] | None] = lambda: None,
) -> Policies:
    """Return the policies of a folder, which is read immediately; without one, those of the
    cluster.

    A set with faults, which `fairlead check` rejects, serves only if no set without them did:
    a version before may have taken it, and pods need some policies.

    `nodes` returns the cluster's nodes, None if unknown, for reviews of policies. Raises
    ServingError if there is no cluster.
    """
    folder = None if settings.policies_from_cluster else settings.policies
    if folder is not None:

        def load(files: Mapping[str, bytes]) -> Served:
            served_set, current = load_served(policy_documents.parse(files)), reloader.current
            if served_set.faults and current is not None and not current.faults:
                raise InvalidDocuments(served_set.faults)
            return served_set

        files = Folder(folder)
        reloader = _reloader(files.read, load, str(folder), parts.metrics, files.signature)
        reloader.poll()
        parts.add("policies", reloader.condition, lambda: reloader.run(settings.poll_interval))
        read_classes = WebhookClasses(parts.home.watches).by_kind if parts.home else dict
        return Policies(lambda: _set_of(reloader), {"folder": str(folder)}, classes=read_classes)
    if parts.home is None:
        raise ServingError("--policies-from-cluster: there is no cluster; name a kubeconfig")
    return _from_cluster(parts, settings, parts.home.watches, nodes)


def _from_cluster(
    parts: Parts,
    settings: ServeSettings,
    watches: Watches,
    nodes: Callable[[], Sequence[Node] | None],
) -> Policies:
    watched, snapshot = PolicyObjects(watches, text_of), Snapshot()
    reader, classes = Objects(), WebhookClasses(watches)
    unchecked = asyncio.Event()
    reloader = _reloader(
        snapshot.read, reader.served, "the cluster", parts.metrics, loaded=unchecked.set
    )
    kept = PoliciesFromCluster(watched, snapshot, reloader)

    async def check() -> None:
        if reloader.current is not None:
            _report(await asyncio.to_thread(reader.checked, reloader.current), parts.metrics)

    checks = ChecksWhenQuiet(unchecked, check, parts.metrics)
    parts.add("policies", kept.condition, kept.run, checks.run)
    return Policies(
        lambda: _set_of(reloader),
        {"resources": ", ".join(watched.caches)},
        PolicyHandler(
            resources=tuple(KINDS),
            objects=watched,
            # Of a thousand objects, both read only the changed one.
            judge=Judge(reader, settings.rollback_to),
            observer=parts.metrics,
            nodes=nodes,
            classes=classes.by_kind,
        ),
        classes.by_kind,
    )


def _set_of(reloader: Reloader[Served]) -> PolicySet | None:
    return reloader.current.policies if reloader.current else None


def _reloader(
    read: Callable[[], dict[str, bytes]],
    compile_all: Callable[[Mapping[str, bytes]], Served],
    where: str,
    metrics: Metrics,
    signature: Callable[[], Signature | None] = lambda: None,
    loaded: Callable[[], None] = lambda: None,
) -> Reloader[Served]:
    def report(value: Served, state: ReloadState) -> None:
        policies = value.policies.policies
        now = state.loaded_at or state.since
        metrics.policies_loaded(
            value.policies.hash,
            [policy.name for policy in policies],
            now,
            [exception.name for exception in value.policies.exceptions],
        )
        _report(value, metrics)
        for warning in value.warnings:
            _logger.warning("policies: %s", warning)
        if not policies:
            _logger.warning("no policies in %s: pods are stamped and left as they are", where)
        loaded()

    reloader = Reloader(
        "policies",
        read,
        compile_all,
        signature=signature,
        digest_of=lambda value: value.policies.hash,
        on_loaded=report,
        on_refused=lambda _state: metrics.count(POLICY_RELOADS, "refused"),
    )
    metrics.read_gauge(REFUSED, reloader.refused, "policies")
    return reloader


def _report(served: Served, metrics: Metrics) -> None:
    """Report the errors with which a set serves, if it is checked."""
    if served.faults is not None:
        metrics.policies_checked(len(served.faults))
        for fault in served.faults:
            _logger.error("policies serve with an error: %s", fault)


# Seconds without a change that end a burst, and the maximum length of one. `kubectl apply` writes
# an object every 10 to 20 ms.
BURST_QUIET_SECONDS: Final = 0.1
BURST_MAX_SECONDS: Final = 0.5
# The same until a set that serves is checked for errors, which takes as long as many sets.
CHECK_QUIET: Final = 1.0
CHECK_LONGEST: Final = 10.0
# Seconds until the next check whether objects were deleted alone or with their definition.
RETRY: Final = 2.0
# Seconds to wait for the objects of a restored definition: usually the definition is created
# first, and the objects follow.
BACK: Final = 10.0


class Snapshot:
    """The objects at one time, set on the event loop and read on a thread."""

    def __init__(self) -> None:
        self.objects: Mapping[str, bytes] = {}
        self.refused = ""

    def read(self) -> dict[str, bytes]:
        """Return the objects. Raises UnreadableInput if they are not reliable."""
        if self.refused:
            raise UnreadableInput([self.refused])
        return dict(self.objects)


async def _settle(
    changed: asyncio.Event,
    quiet: float,
    longest: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Wait for a change, and then for the end of the burst."""
    await changed.wait()
    until = clock() + longest
    while changed.is_set() and (left := until - clock()) > 0:
        changed.clear()
        await sleep(min(quiet, left))
    changed.clear()


@dataclass(eq=False, repr=False, slots=True)
class ChecksWhenQuiet:
    """Runs `check` once the sets that `unchecked` reports come no more; in a long burst sometimes.

    No pod waits for what a check finds. Clock and sleep are arguments.
    """

    unchecked: asyncio.Event
    check: Callable[[], Awaitable[None]]
    observer: Observer
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self) -> NoReturn:
        while True:
            await _settle(self.unchecked, CHECK_QUIET, CHECK_LONGEST, self.clock, self.sleep)
            try:
                await self.check()
            except Exception:
                self.observer.count(ENGINE_ERRORS)
                _logger.exception("the policies that serve are not checked")


@dataclass(eq=False, repr=False, slots=True)
class PoliciesFromCluster(Generic[T]):
    """Triggers `reloader`, whose source is `snapshot`, after each change of the objects.

    It waits for the end of a burst of changes, so that the set is compiled once. Deleted objects
    are removed from the set only while the cluster still defines their kind, and did so recently:
    deleting a definition must not silently disable placement. Clock and sleep are arguments.
    """

    watched: PolicyObjects[bytes]
    snapshot: Snapshot
    reloader: Reloader[T]
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    # The last time when a definition was missing.
    _gone: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self.watched.subscribe(lambda _change: self._changed.set())

    async def run(self) -> NoReturn:
        await self.watched.wait_synced()
        # An empty cluster is a valid, empty set.
        self._changed.set()
        while True:
            await _settle(
                self._changed, BURST_QUIET_SECONDS, BURST_MAX_SECONDS, self.clock, self.sleep
            )
            await self._take()

    def condition(self) -> Condition:
        """Return whether there is a set, and what prevents a newer one."""
        trouble = self.watched.trouble()
        if not self.watched.synced:
            return Condition(ready=False, reason=f"not listed yet{trouble and '; ' + trouble}")
        condition = self.reloader.condition()
        reasons = filter(None, (condition.reason, trouble, self.watched.unchecked))
        return Condition(condition.ready, "; ".join(reasons))

    async def _take(self) -> None:
        objects = self.watched.objects()
        vanished = len(self.snapshot.objects.keys() - objects.keys())
        self.snapshot.refused = await self._doubt(vanished)
        if self.snapshot.refused:
            await self.reloader.poll_in_thread()
            await self.sleep(RETRY)
            self._changed.set()
        else:
            self.snapshot.objects = objects
            await self.reloader.poll_in_thread()

    async def _doubt(self, vanished: int) -> str:
        """Return why the objects as they are now must not become the set; "" if they may."""
        if doubt := await self._doubt_vanished(vanished) if vanished else "":
            return doubt
        try:
            return await self.watched.doubt()
        except ClusterError as error:
            return f"whether the objects are whole is unknown: {error}"

    async def _doubt_vanished(self, vanished: int) -> str:
        """Return why vanished objects must not be removed from the set; "" if they may be."""
        try:
            undefined = await self.watched.undefined()
        except ClusterError as error:
            return f"{vanished} objects vanished, and the reason is unknown: {error}"
        if not undefined:
            back = self.clock() - self._gone < BACK
            what = "objects vanished with their definition: it is back; waiting for the objects"
            return f"{vanished} {what}" if back else ""
        self._gone = self.clock()
        return (
            f"{vanished} objects vanished with the definition of {undefined}: restore both in the "
            "cluster, or delete only the objects if they should not place pods"
        )
