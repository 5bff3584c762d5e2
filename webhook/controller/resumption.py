"""Restore the webhook's rules when the time of `fairlead webhook disable` is over."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CONFIGURATIONS
from webhook.errors import ClusterError, NotLeading
from webhook.suspension import FIELD_MANAGER, Suspension, parse_suspension, resume

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from webhook.kube.client import Client
    from webhook.kube.writer import Writer

_logger = logging.getLogger(__name__)

# Seconds between two checks. A check reads one small object. The period also bounds the delay
# after the clock was set or the machine was suspended.
CHECK_SECONDS: Final = 5.0
# Seconds until the retry after a conflict with another client.
CONFLICT_RETRY_SECONDS: Final = 0.2


class Resumption:
    """Checks the webhook configuration while this process leads.

    Two processes that both believe they lead do no harm: a write requires the version that was
    read. `clock` is the wall clock, in UTC, because another machine wrote the end time.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        *,
        name: str = names.WEBHOOK_CONFIGURATION,
        period: float = CHECK_SECONDS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._writer = writer
        self._path = CONFIGURATIONS.path_of(name)
        self._period = period
        self._clock = clock
        self._trouble = ""
        self._announced: Suspension | None = None

    async def lead(self) -> NoReturn:
        """Check until cancelled."""
        while True:
            pause = await self.resume_if_due()
            await asyncio.sleep(pause)

    async def resume_if_due(self) -> float:
        """Restore the rules if they are due; return the seconds until the next check."""
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
        suspension = parse_suspension(configuration)
        if suspension is None:
            self._announced = None
            return self._period
        self._announce(suspension)
        now = self._clock()
        if suspension.until and not suspension.due(now):
            return min(
                self._period, max((suspension.until - now).total_seconds(), CONFLICT_RETRY_SECONDS)
            )
        query = {"fieldManager": FIELD_MANAGER}
        await self._writer.patch(self._path, resume(configuration), "merge", query=query)
        self._announced = None
        if suspension.silent:
            _logger.warning("the webhook is enabled again", extra={"entries": suspension.silent})
        else:
            _logger.warning("the webhook was enabled by others: its rules are there")
        return self._period

    def _announce(self, suspension: Suspension) -> None:
        """Log the state once per change; each problem is followed by its cure."""
        if suspension == self._announced:
            return
        self._announced = suspension
        for problem in suspension.problems:
            _logger.error("the webhook is disabled, and %s", problem)
        if suspension.lost:
            _logger.error(
                "the rules of %s were not saved: those that every entry has are put back",
                ", ".join(suspension.lost),
            )
        if suspension.until:
            _logger.warning("the webhook is disabled until %s", suspension.until.isoformat())

    def _failed(self, error: ClusterError) -> float:
        if error.status == HTTPStatus.CONFLICT:
            return CONFLICT_RETRY_SECONDS
        if error.status != HTTPStatus.NOT_FOUND and str(error) != self._trouble:
            self._trouble = str(error)
            _logger.warning("it is unknown whether the webhook has to be enabled again: %s", error)
        return self._period
