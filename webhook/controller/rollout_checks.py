"""Look whether the rollouts of Fairlead's own Deployments are complete, all the time."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.cluster_objects.deployments import missing_pods
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from webhook.kube.client import Client

_logger = logging.getLogger(__name__)

# Seconds between two looks.
INTERVAL: Final = 15.0
_OURS: Final = (names.CONTROLLER, names.WEBHOOK, names.UI)


@dataclass(eq=False, repr=False)
class RolloutChecks:
    """Tells `report` of each Deployment that exists what its rollout lacks; empty: nothing.

    Every replica looks, leader or not: the pods that a rollout waits for are not scraped. What
    cannot be read is not complete.
    """

    client: Client
    namespace: str
    report: Callable[[Mapping[str, str]], None]
    _: KW_ONLY
    interval: float = INTERVAL
    reason: str = field(default="not read yet", init=False)

    async def run(self) -> NoReturn:
        """Look until cancelled."""
        path = CollectionPath("apps/v1", "deployments", self.namespace)
        while True:
            try:
                pairs = (await self.client.list(path, _read)).items
                self._note({name: lacks for name, lacks in pairs if name in _OURS})
            except ClusterError as error:
                why = f"cannot be read: {error.why}"
                self._note(dict.fromkeys((names.CONTROLLER, names.WEBHOOK), why))
            except Exception:
                _logger.exception("rollouts are not looked at: this is a bug")
                self._note(dict.fromkeys((names.CONTROLLER, names.WEBHOOK), "not read"))
            await asyncio.sleep(self.interval)

    def _note(self, lacks_by_name: Mapping[str, str]) -> None:
        lacking = dict.fromkeys(lacks for lacks in lacks_by_name.values() if lacks)
        reason = "; ".join(lacking) or "complete"
        if reason != self.reason:
            _logger.info("rollouts: %s", reason)
        self.reason = reason
        self.report(lacks_by_name)


def _read(deployment: Mapping[str, Any]) -> tuple[str, str]:
    return deployment["metadata"]["name"], missing_pods(deployment)
