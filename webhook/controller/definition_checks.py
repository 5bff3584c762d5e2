"""Compare the cluster's definitions with those of this version, all the time."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.cluster_objects.served_definitions import (
    CURE,
    FORBIDDEN,
    ServedDefinitions,
    reports,
)
from webhook.errors import ClusterError
from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions
from webhook.run.crd import NAME, custom_resource_definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import NoReturn

    from webhook.kube.client import Client

_logger = logging.getLogger(__name__)

# Seconds between two checks. Writes of statuses have checks of their own.
INTERVAL: Final = 15.0
NAMES: Final = (*RESOURCES.values(), NAME)


def own_definitions() -> Iterable[Mapping[str, Any]]:
    """Return every definition of this version."""
    return (*custom_resource_definitions().values(), custom_resource_definition())


@dataclass(eq=False, repr=False)
class DefinitionChecks:
    """Checks all definitions, and tells `report` of each whether it is outdated or not known."""

    client: Client
    report: Callable[[str, bool], None]
    _: KW_ONLY
    interval: float = INTERVAL
    reason: str = field(default="not read yet", init=False)

    def __post_init__(self) -> None:
        self._served = ServedDefinitions(self.client, own_definitions)
        self._note(dict.fromkeys(NAMES, "not read yet"))

    async def run(self) -> NoReturn:
        """Check until cancelled."""
        while True:
            try:
                problems = reports(await self._served.read())
                self._note({name: f"{text}; {CURE}" for name, text in problems.items()})
            except ClusterError as error:
                why = FORBIDDEN if error.status == HTTPStatus.FORBIDDEN else str(error)
                self._note(dict.fromkeys(NAMES, why))
            except Exception:
                _logger.exception("definitions are not compared: this is a bug")
                self._note(dict.fromkeys(NAMES, "not compared, see the log"))
            await asyncio.sleep(self.interval)

    def _note(self, problems: Mapping[str, str]) -> None:
        reason = "; ".join(dict.fromkeys(problems.values())) or "those of this version"
        if problems and reason != self.reason:
            _logger.warning("definitions: %s", reason)
        self.reason = reason
        for name in NAMES:
            self.report(name, name in problems)
