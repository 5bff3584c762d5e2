"""Puts the webhook's rules back once the time of a disabling is over."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError, NotLeading
from webhook.kube.named import CONFIGURATIONS
from webhook.suspension import FIELD_MANAGER, Suspension, read, resume

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from webhook.kube.client import Client
    from webhook.kube.writer import Writer

_logger = logging.getLogger(__name__)

# Seconds between two looks. What is looked at is one small object, and a clock that is set, or a
# machine that slept, is found out as soon.
PERIOD: Final = 5.0
# Seconds after somebody else has changed the object meanwhile.
AGAIN: Final = 0.2


class Resumption:
    """Looks at the webhook configuration while this process leads.

    Two that both believe to lead do no harm: a write holds for the version that was read. `clock`
    is the wall clock, in UTC, for the time that is waited for was written by another machine.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        *,
        name: str = names.WEBHOOK_CONFIGURATION,
        period: float = PERIOD,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._writer = writer
        self._path = f"{CONFIGURATIONS}/{name}"
        self._period = period
        self._clock = clock
        self._trouble = ""
        self._seen: Suspension | None = None

    async def lead(self) -> NoReturn:
        """Go on until cancelled."""
        while True:
            pause = await self.look()
            await asyncio.sleep(pause)

    async def look(self) -> float:
        """Put the rules back if they are due; the seconds until the next look."""
        try:
            configuration = await self._client.get(self._path)
            pause = await self._act(configuration)
        except NotLeading:
            return self._period
        except ClusterError as error:
            return self._failed(error)
        self._trouble = ""
        return pause

    async def _act(self, configuration: dict[str, Any]) -> float:
        seen = read(configuration)
        if seen is None:
            self._seen = None
            return self._period
        self._announce(seen)
        now = self._clock()
        if seen.until and not seen.due(now):
            return min(self._period, max((seen.until - now).total_seconds(), AGAIN))
        query = {"fieldManager": FIELD_MANAGER}
        await self._writer.patch(self._path, resume(configuration), "merge", query=query)
        self._seen = None
        if seen.silent:
            _logger.warning("the webhook is enabled again", extra={"entries": seen.silent})
        else:
            _logger.warning("the webhook was enabled by others: its rules are there")
        return self._period

    def _announce(self, seen: Suspension) -> None:
        """Say once how it stands; each problem has its cure in what follows."""
        if seen == self._seen:
            return
        self._seen = seen
        for problem in seen.problems:
            _logger.error("the webhook is disabled, and %s", problem)
        if seen.lost:
            _logger.error(
                "the rules of %s were not saved: those that every entry has are put back",
                ", ".join(seen.lost),
            )
        if seen.until:
            _logger.warning("the webhook is disabled until %s", seen.until.isoformat())

    def _failed(self, error: ClusterError) -> float:
        if error.status == HTTPStatus.CONFLICT:
            return AGAIN
        if error.status != HTTPStatus.NOT_FOUND and str(error) != self._trouble:
            self._trouble = str(error)
            _logger.warning("cannot tell whether the webhook is to be enabled again: %s", error)
        return self._period
