"""Serve the policies of the cluster, or the last valid set."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeVar

from webhook.errors import ClusterError, UnreadableInput
from webhook.server.readiness import Condition
from webhook.server.reload import Source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.kube.policy_objects import PolicyObjects
    from webhook.server.reload import Reloader

T = TypeVar("T")

# Seconds without a change that end a burst, and the maximum length of one. `kubectl apply` writes
# an object every 10 to 20 ms.
QUIET: Final = 0.1
LONGEST: Final = 0.5
# Seconds until the next check whether objects were deleted alone or with their definition.
RETRY: Final = 2.0
# Seconds to wait for the objects of a restored definition: usually the definition is created
# first, and the objects follow.
BACK: Final = 10.0


class Snapshot(Source):
    """The objects at one time, set on the event loop and read on a thread."""

    def __init__(self) -> None:
        self.objects: Mapping[str, bytes] = {}
        self.refused = ""

    def read(self) -> dict[str, bytes]:
        """Return the objects. Raises UnreadableInput if they are not reliable."""
        if self.refused:
            raise UnreadableInput([self.refused])
        return dict(self.objects)


class PoliciesFromCluster(Generic[T]):
    """Triggers `reloader`, whose source is `snapshot`, after each change of the objects.

    It waits for the end of a burst of changes, so that the set is compiled once. Deleted objects
    are removed from the set only while the cluster still defines their kind, and did so recently:
    deleting a definition must not silently disable placement. Clock and sleep are arguments.
    """

    def __init__(
        self,
        watched: PolicyObjects[bytes],
        snapshot: Snapshot,
        reloader: Reloader[T],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._watched = watched
        self._snapshot = snapshot
        self._reloader = reloader
        self._clock = clock
        self._sleep = sleep
        self._changed = asyncio.Event()
        # The last time when a definition was missing.
        self._gone = float("-inf")
        watched.subscribe(lambda _change: self._changed.set())

    async def run(self) -> NoReturn:
        """Run until cancelled."""
        await self._watched.wait_synced()
        # An empty cluster is a valid, empty set.
        self._changed.set()
        while True:
            await self._settle()
            await self._take()

    def condition(self) -> Condition:
        """Return whether there is a set, and what prevents a newer one."""
        trouble = self._watched.trouble()
        if not self._watched.synced:
            return Condition(ready=False, reason=f"not listed yet{trouble and '; ' + trouble}")
        condition = self._reloader.condition()
        return (
            Condition(condition.ready, f"{condition.reason}; {trouble}") if trouble else condition
        )

    async def _settle(self) -> None:
        await self._changed.wait()
        until = self._clock() + LONGEST
        while self._changed.is_set() and (left := until - self._clock()) > 0:
            self._changed.clear()
            await self._sleep(min(QUIET, left))
        self._changed.clear()

    async def _take(self) -> None:
        objects = self._watched.objects()
        vanished = len(self._snapshot.objects.keys() - objects.keys())
        self._snapshot.refused = await self._doubt(vanished) if vanished else ""
        if self._snapshot.refused:
            await self._reloader.poll_in_thread()
            await self._sleep(RETRY)
            self._changed.set()
        else:
            self._snapshot.objects = objects
            await self._reloader.poll_in_thread()

    async def _doubt(self, vanished: int) -> str:
        """Return why vanished objects must not be removed from the set; "" if they may be."""
        try:
            undefined = await self._watched.undefined()
        except ClusterError as error:
            return f"{vanished} objects vanished, and the reason is unknown: {error}"
        if not undefined:
            back = self._clock() - self._gone < BACK
            what = "objects vanished with their definition: it is back; waiting for the objects"
            return f"{vanished} {what}" if back else ""
        self._gone = self._clock()
        return (
            f"{vanished} objects vanished with the definition of {undefined}: restore both in the "
            "cluster, or delete only the objects if they should not place pods"
        )
