"""Serves the policy set of a cluster's objects, and the last good one while they make none."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, TypeVar

from webhook.errors import ClusterError, UnreadableInput
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.server.folder import Signature
    from webhook.server.reload import Reloader

T = TypeVar("T")

# Seconds without a change after which a burst is over, and how long one may keep us waiting: of a
# `kubectl apply` of fifty objects, one comes every ten or twenty milliseconds.
QUIET: Final = 0.1
LONGEST: Final = 0.5
# Seconds until it is asked again whether objects went alone, or with their definition.
RETRY: Final = 2.0
# Seconds for which the objects of a definition that is back are waited for: whoever gives the
# cluster both gives one after the other.
BACK: Final = 10.0


class Watched(Protocol):
    """The objects as a watch tells of them: see kube.policy_objects.PolicyObjects."""

    @property
    def synced(self) -> bool:
        """Whether all of them have been listed once."""

    async def wait_synced(self) -> None:
        """Return once `synced`."""

    def subscribe(self, listener: Callable[[object], None]) -> None:
        """Call `listener` with each change, after it."""

    def objects(self) -> dict[str, bytes]:
        """Every object's text, by resource and name."""

    def trouble(self) -> str:
        """Why nothing is told, with the cure; "" if all is well."""

    async def undefined(self) -> str:
        """What definitions are gone or going; "" if none is. Raises ClusterError."""


class Snapshot:
    """The objects at one moment, as a reload.Source: taken on the event loop, read on a thread."""

    def __init__(self) -> None:
        self.objects: Mapping[str, bytes] = {}
        self.refused = ""

    def read(self) -> dict[str, bytes]:
        """Return the objects. Raises UnreadableInput if they are not to be believed."""
        if self.refused:
            raise UnreadableInput([self.refused])
        return dict(self.objects)

    def signature(self) -> Signature | None:
        """Return None: only the objects tell."""
        return None


class KeptPolicies(Generic[T]):
    """Has `reloader`, whose source is `snapshot`, look whenever the objects have changed.

    A burst of changes is let settle first, so that it is compiled once. Objects that vanish are
    missed only while the cluster still knows such objects, and did a moment ago: who deletes a
    definition does not mean that no pod is to be placed. Clock and sleep are handed in.
    """

    def __init__(
        self,
        watched: Watched,
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
        # When a definition was last found to be gone.
        self._gone = float("-inf")
        watched.subscribe(lambda _change: self._changed.set())

    async def run(self) -> NoReturn:
        """Go on until cancelled."""
        await self._watched.wait_synced()
        # So that no objects at all are a set as well.
        self._changed.set()
        while True:
            await self._settle()
            await self._take()

    def condition(self) -> Condition:
        """Tell whether there is a set to serve with, and what keeps a newer one from serving."""
        trouble = self._watched.trouble()
        if not self._watched.synced:
            return Condition(ready=False, reason=f"not listed yet{trouble and '; ' + trouble}")
        seen = self._reloader.condition()
        return Condition(seen.ready, f"{seen.reason}; {trouble}") if trouble else seen

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
            await self._reloader.look()
            await self._sleep(RETRY)
            self._changed.set()
        else:
            self._snapshot.objects = objects
            await self._reloader.look()

    async def _doubt(self, vanished: int) -> str:
        """Why objects that vanished are no reason to serve without them; "" if they are."""
        try:
            undefined = await self._watched.undefined()
        except ClusterError as error:
            return f"{vanished} objects vanished, and it cannot be told why: {error}"
        if not undefined:
            back = self._clock() - self._gone < BACK
            what = "objects vanished with their definition: it is back, and they are waited for"
            return f"{vanished} {what}" if back else ""
        self._gone = self._clock()
        return (
            f"{vanished} objects vanished with the definition of {undefined}: give the cluster "
            "both again, or delete the objects alone if no pod is to be placed by them"
        )
