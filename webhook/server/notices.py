"""Write Events on workloads in the background, at a limited rate."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from webhook.api_paths import CollectionPath
from webhook.decision.notice import owner_of
from webhook.dns_names import is_subdomain
from webhook.errors import ClusterError
from webhook.kube.client import METADATA
from webhook.kube.events import event
from webhook.kube.rate_limit import Paces
from webhook.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api_paths import ObjectPath
    from webhook.decision.notice import Notice, Owner
    from webhook.kube.client import Client

_logger = logging.getLogger(__name__)

# The result of a notice. repeated: sent within the hour, by any replica; dropped: the queue is full
# or the namespace over its limit; failed: the API server rejected it.
Outcome: TypeAlias = Literal["written", "repeated", "dropped", "failed"]

COMPONENT: Final = "fairlead-webhook"
# The maximum length of the queue, and the number of Events and namespaces to remember.
QUEUE_LENGTH: Final = 500
REMEMBERED_EVENTS: Final = 4096
# The rate limit per namespace: a burst of Events, then one per EVENT_INTERVAL_SECONDS seconds.
BURST: Final = 50
EVENT_INTERVAL_SECONDS: Final = 10.0
_HOUR: Final = 3600
# Characters of an owner's name in the name of an Event.
_LONGEST_NAME: Final = 200
# Owners that another object may create: a Deployment, a JobSet, a RayJob. The webhook may read no
# others (manifests/base/webhook-rights.yaml).
CREATED: Final = {
    ("apps", "Deployment"): "deployments",
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", "StatefulSet"): "statefulsets",
    ("batch", "Job"): "jobs",
    ("jobset.x-k8s.io", "JobSet"): "jobsets",
    ("kubernetes.dask.org", "DaskCluster"): "daskclusters",
    ("kubernetes.dask.org", "DaskWorkerGroup"): "daskworkergroups",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkersets",
    ("ray.io", "RayCluster"): "rayclusters",
    ("ray.io", "RayJob"): "rayjobs",
    ("sparkoperator.k8s.io", "SparkApplication"): "sparkapplications",
}
# Seconds to wait for one owner, and the number of owners to read: a worker of a DaskJob has the
# most, a ReplicaSet, a Deployment, a DaskWorkerGroup and a DaskCluster.
_OWNER_TIMEOUT_SECONDS: Final = 5.0
_MOST_HOPS: Final = 5


@dataclass(eq=False, repr=False, slots=True)
class Notices:
    """Queues notices without waiting; `run()` writes them as Events, one at a time.

    An Event is about the object that the user wrote, as far as the owners above the pod's can be
    read: a JobSet, and not its Job. Its name is derived from that object's uid, the reason and the
    hour. So all replicas, also after a restart, write the same Event. A lost notice is repeated,
    because controllers try again. `clock` is a monotonic clock in seconds for the rate limit.
    """

    client: Client
    on_outcome: Callable[[Outcome], None]
    _: KW_ONLY
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    _queue: asyncio.Queue[tuple[str, Notice, datetime]] = field(
        default_factory=lambda: asyncio.Queue(QUEUE_LENGTH), init=False
    )
    _sent: Recent[str, datetime] = field(
        default_factory=lambda: Recent(REMEMBERED_EVENTS), init=False
    )
    _paces: Paces = field(
        default_factory=lambda: Paces(BURST, EVENT_INTERVAL_SECONDS, REMEMBERED_EVENTS), init=False
    )

    def submit(self, notice: Notice) -> None:
        """Queue an Event, unless it was sent within the hour or a limit is reached."""
        when = self.now()
        owner = notice.owner
        # Names are unique in a namespace only.
        key = owner if owner.uid else owner._replace(uid=f"{notice.namespace} {owner.kind}")
        name = event_name(key, notice.reason, when)
        if self._sent.get(name):
            self.on_outcome("repeated")
            return
        if self._queue.full() or not self._paces.passes(notice.namespace, self.clock()):
            self.on_outcome("dropped")
            return
        self._sent.put(name, when)
        self._queue.put_nowait((name, notice, when))

    async def run(self) -> NoReturn:
        while True:
            name, notice, when = await self._queue.get()
            try:
                self.on_outcome(await self._write_event(name, notice, when))
            except Exception:
                # The same process decides on pods, so no Event may stop it.
                self.on_outcome("failed")
                _logger.exception("event lost", extra={"reason": notice.reason})
            finally:
                self._queue.task_done()

    async def flushed(self) -> None:
        """Return when all queued Events are written or lost."""
        await self._queue.join()

    async def _write_event(self, name: str, notice: Notice, when: datetime) -> Outcome:
        root = await self._root(notice)
        if not root.uid:
            # No such object: the label is the author's own.
            return "dropped"
        if root != notice.owner:
            of_root = event_name(root, notice.reason, when)
            if self._sent.get(of_root):
                return "repeated"
            self._sent.put(of_root, when)
        else:
            of_root = name
        path = CollectionPath("v1", "events", notice.namespace)
        try:
            await self.client.create(path, _event(of_root, notice, root, when))
        except ClusterError as error:
            if error.status == HTTPStatus.CONFLICT:
                return "repeated"
            # Retry with the owner's next pod.
            self._sent.forget(name)
            self._sent.forget(of_root)
            _logger.warning(
                "event lost",
                extra={
                    "namespace": notice.namespace,
                    "owner": f"{root.kind}/{root.name}",
                    "reason": notice.reason,
                    "error": str(error),
                },
            )
            return "failed"
        return "written"

    async def _root(self, notice: Notice) -> Owner:
        """Return the topmost controller above the pod that can be found.

        It has no uid if the pod has no owner, and the object that its label names does not exist.
        """
        owner = await self._above(notice.namespace, notice.owner)
        if notice.named and (not owner.uid or owner.kind == "Pod"):
            named = await self._above(notice.namespace, notice.named)
            return named if named.uid else owner
        return owner

    async def _above(self, namespace: str, owner: Owner) -> Owner:
        """Return the topmost controller above an owner, or the owner, with its uid if it exists."""
        for _ in range(_MOST_HOPS):
            try:
                path = _path(namespace, owner)
                if path is None:
                    break
                async with asyncio.timeout(_OWNER_TIMEOUT_SECONDS):
                    owner_object = await self.client.get(path, accept=METADATA)
            except (ClusterError, TimeoutError):
                # It is gone, or the right was removed: the Event is about what is known.
                break
            uid = str(owner_object["metadata"].get("uid", ""))
            if owner.uid and uid != owner.uid:
                break
            owner = owner._replace(uid=uid)
            above = owner_of(owner_object)
            if above is None:
                break
            owner = above
        return owner


def _path(namespace: str, owner: Owner) -> ObjectPath | None:
    """Return the path of an owner that may have a controller itself, else None.

    The owner is as the pod refers to it, and anyone may write a pod. Raises InvalidName.
    """
    resource = CREATED.get((owner.api_version.partition("/")[0], owner.kind))
    if not resource:
        return None
    return CollectionPath(owner.api_version, resource, namespace).path_of(owner.name)


def event_name(owner: Owner, reason: str, when: datetime) -> str:
    """Return a name that is the same for the same owner, reason and hour, in every replica."""
    hour = int(when.timestamp()) // _HOUR
    identity = "\n".join((owner.uid, reason, str(hour)))
    digest = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    short = owner.name[:_LONGEST_NAME].rstrip("-.")
    # Some kinds allow names that are not valid for an Event.
    return f"{short if is_subdomain(short) else 'workload'}.{digest}"


def _event(name: str, notice: Notice, root: Owner, when: datetime) -> dict[str, Any]:
    about = {
        "apiVersion": root.api_version,
        "kind": root.kind,
        "namespace": notice.namespace,
        "name": root.name,
        "uid": root.uid,
    }
    content = ("Warning", notice.reason, notice.message(root))
    return event(name, about, content, component=COMPONENT, when=when)
