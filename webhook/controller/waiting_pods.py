"""What is known of pods that wait for a node: the room for them, and what autoscalers report."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError
from webhook.recent import Recent
from webhook.run.observation import last_seen
from webhook.run.observed import Refusal
from webhook.run.room import room_of_pods, room_of_run
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from webhook.kube.client import Client
    from webhook.placement.node_groups import NodeGroups
    from webhook.placement.room import Room
    from webhook.run.observed import OwnedPod
    from webhook.run.plan import Plan
    from webhook.run.pod_sets import PodSet

    # Tries the pods of a Run.
    Place: TypeAlias = Callable[[], Awaitable[Sequence[PodSet] | Refusal]]

_logger = logging.getLogger(__name__)

# Seconds between any two reads. To find the Events about one pod, an API server goes through all of
# the namespace.
READ_INTERVAL_SECONDS: Final = 1.0
# Seconds for which the room of a Run counts.
ROOM_PAUSE_SECONDS: Final = 60.0
# Rooms that are found in this time, at most; those of further Runs are not known.
_MOST_ROOMS: Final = 10_000
_REMEMBERED_PODS: Final = 1_000
_MESSAGE_MAX_CHARACTERS: Final = 400


class WaitingPods:
    """Reads the newest Event about a waiting pod that its scheduler did not write.

    Autoscalers report on the pod itself whether they make a node for it: cluster-autoscaler by
    TriggeredScaleUp and NotTriggerScaleUp (processors/status/eventing_scale_up_processor.go),
    Karpenter by Nominated and FailedScheduling (pkg/controllers/provisioning/scheduling/events.go).
    """

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: Recent[str, tuple[float, str]] = Recent(_REMEMBERED_PODS)
        self._rooms: Recent[str, tuple[float, Room | Refusal | None]] = Recent(_MOST_ROOMS)
        self._rooms_since, self._rooms_found = float("-inf"), 0
        self._last = self._placed = float("-inf")

    async def report(self, namespace: str, pod: OwnedPod, pause: float) -> tuple[str, float]:
        """Return who reported what and since when, and the seconds until it may be read again.

        It is read `pause` seconds after the last time, or later if other runs wait, too. The text
        is empty without such an Event, and if Events cannot be read: nothing depends on them.
        """
        now = self._clock()
        at, text = self._known.get(pod.uid) or (float("-inf"), "")
        if now - at < pause:
            return text, at + pause - now
        if now - self._last < READ_INTERVAL_SECONDS:
            return text, READ_INTERVAL_SECONDS
        self._last = now
        text = await self._read(namespace, pod)
        self._known.put(pod.uid, (now, text))
        return text, pause

    async def room(
        self, uid: str, plan: Plan, nodes: NodeGroups, place: Place, *, always: bool = False
    ) -> Room | Refusal | None:
        """Return how many replicas of the Run the nodes can run at one time, at most a minute old,
        or why one is rejected.

        So a status changes at most once a minute, however often nodes come and go. `place` tries
        the pods; if others were tried just now, requests alone count, unless `always`.
        """
        now = self._clock()
        at, room = self._rooms.get(uid) or (float("-inf"), None)
        if now - at < ROOM_PAUSE_SECONDS:
            return room
        if now - self._rooms_since >= ROOM_PAUSE_SECONDS:
            self._rooms_since, self._rooms_found = now, 0
        if self._rooms_found < _MOST_ROOMS:
            self._rooms_found += 1
            placed: Sequence[PodSet] | Refusal = ()
            if always or now - self._placed >= READ_INTERVAL_SECONDS:
                self._placed = now
                placed = await place()
            room = placed if isinstance(placed, Refusal) else room_of_pods(placed, nodes)
            room = room or room_of_run(plan, nodes)
            self._rooms.put(uid, (now, room))
        return room

    async def _read(self, namespace: str, pod: OwnedPod) -> str:
        fields = f"involvedObject.uid={pod.uid},source!=default-scheduler"
        try:
            listing = await self._client.list(
                CollectionPath("v1", "events", namespace),
                _seen_and_text,
                query={"fieldSelector": fields},
            )
        except ClusterError as error:
            _logger.debug("Events about pod %s/%s: %s", namespace, pod.name, error)
            return ""
        # A scheduler of another name writes the message of the pod's condition, too.
        events = (event for event in listing.items if event and pod.unscheduled not in event[1])
        _, text = max(events, default=("", ""))
        return text


def _seen_and_text(raw: dict[str, Any]) -> tuple[str, str]:
    """Return when an Event was last seen; and its text, which a repetition does not change."""
    since = raw.get("eventTime") or raw.get("firstTimestamp") or ""
    who = (raw.get("source") or {}).get("component") or raw.get("reportingComponent") or "unknown"
    message = " ".join(str(raw.get("message") or "").split())
    return last_seen(raw), f"{who} since {since}: {cut(message, _MESSAGE_MAX_CHARACTERS)}"
