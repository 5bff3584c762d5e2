"""What the controller knows of the cluster: caches of Runs and of what they own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.controller.by_run import ByRun
from webhook.controller.stored_run import StoredRun, store
from webhook.kube.cache import Cache
from webhook.run import seen
from webhook.run.observed import Observed, OwnedDeployment, OwnedPod

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.kube.cache import Change
    from webhook.run.observed import Refusal


class RunsService(NamedTuple):
    """A Service by the uid of the Run that owns it; `closed` while it selects no pod."""

    run_uid: str
    closed: bool


class RunsDeployment(NamedTuple):
    """A Deployment with the uid of the Run that owns it."""

    run_uid: str
    deployment: OwnedDeployment


class Known:
    """The caches, kept current by the informers, and what was written put in at once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs: Cache[StoredRun] = Cache(store, clock=clock)
        self.pods: Cache[OwnedPod] = Cache(seen.pod, clock=clock)
        self.services: Cache[RunsService] = Cache(_service, clock=clock)
        self.config_maps: Cache[str] = Cache(seen.owner_uid, clock=clock)
        self.deployments: Cache[RunsDeployment] = Cache(_deployment, clock=clock)
        self._pods = ByRun(self.pods, lambda pod: pod.run_uid)
        self._services = ByRun(self.services, lambda owned: owned.run_uid)
        self._config_maps = ByRun(self.config_maps, lambda uid: uid)
        self._deployments = ByRun(self.deployments, lambda owned: owned.run_uid)
        self._keys: dict[str, str] = {}
        self.runs.subscribe(self._run_changed)

    def key_of(self, uid: str) -> str | None:
        """The key of the Run with this uid; None if there is none."""
        return self._keys.get(uid)

    def pod_count(self, namespace: str, uid: str) -> int:
        """How many pods the Run with this uid has."""
        return self._pods.count(namespace, uid)

    def observed(self, namespace: str, uid: str, refusals: tuple[Refusal, ...] = ()) -> Observed:
        """What the Run with this uid owns."""
        deployments = self._deployments.of(namespace, uid)
        services = self._services.of(namespace, uid).values()
        return Observed(
            pods=dict(self._pods.of(namespace, uid)),
            service=bool(services),
            service_closed=any(service.closed for service in services),
            config_map=self._config_maps.count(namespace, uid) > 0,
            deployment=next((each.deployment for each in deployments.values()), None),
            refusals=refusals,
        )

    def _run_changed(self, change: Change[StoredRun]) -> None:
        if change.before is not None:
            self._keys.pop(change.before.uid, None)
        if change.after is not None:
            self._keys[change.after.uid] = change.key


def _service(raw: dict[str, Any]) -> RunsService | None:
    uid = seen.owner_uid(raw)
    return (
        RunsService(uid, closed=names.CLOSED in (raw["spec"].get("selector") or {}))
        if uid
        else None
    )


def _deployment(raw: dict[str, Any]) -> RunsDeployment | None:
    uid, found = seen.owner_uid(raw), seen.deployment(raw)
    return RunsDeployment(uid, found) if uid and found else None
