"""Disables the webhook of a cluster for a time, and enables it again."""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names, suspension
from webhook.errors import ClusterError, InstallationError
from webhook.installation.kinds import CONFIGURATION, key_of
from webhook.kube.lease import read as read_lease

if TYPE_CHECKING:
    from webhook.kube.client import Client

    Json = dict[str, Any]

_KEY: Final = key_of(CONFIGURATION, names.WEBHOOK_CONFIGURATION)
_QUERY: Final = {"fieldManager": suspension.FIELD_MANAGER}
STALE: Final = timedelta(minutes=1)
# Somebody else writes to it now and then: the controller, say.
_TRIES: Final = 5


class Enabled(NamedTuple):
    """What `enable` found: whether it was disabled, and entries whose rules had been lost."""

    was_disabled: bool
    lost: tuple[str, ...]


class Disabled(NamedTuple):
    """Until when it was disabled before, and the API server's time as it did this."""

    before: datetime | None
    server_time: datetime | None


async def disable(client: Client, until: datetime) -> Disabled:
    """Take the webhook's rules away until then, by one patch.

    Raises InstallationError if there is no webhook configuration, and ClusterError.
    """
    for _ in range(_TRIES):
        live = await _read(client)
        known = suspension.read(live)
        if stored := await _written(client, suspension.suspend(live, until)):
            return Disabled(known.until if known else None, written_at(stored))
    raise _contended()


def written_at(stored: Json) -> datetime | None:
    """When the API server, by its own clock, took the last change of ours."""
    times = [
        each["time"]
        for each in stored["metadata"].get("managedFields") or ()
        if each.get("manager") == suspension.FIELD_MANAGER and each.get("time")
    ]
    return datetime.fromisoformat(max(times)) if times else None


async def enable(client: Client) -> Enabled:
    """Put the rules back now. Raises as `disable` does."""
    for _ in range(_TRIES):
        live = await _read(client)
        known = suspension.read(live)
        if known is None and all(each.get("rules") for each in live["webhooks"]):
            return Enabled(was_disabled=False, lost=())
        if await _written(client, suspension.resume(live)):
            lost = known.lost if known else tuple(_silent(live))
            return Enabled(was_disabled=True, lost=lost)
    raise _contended()


async def leader(client: Client, now: datetime) -> str:
    """Who leads, and so will put the rules back; "" if nobody does, or that cannot be told."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.CONTROLLER}"
    try:
        return holder(await client.get(path), now)
    except ClusterError:
        return ""


def holder(lease: Json, now: datetime) -> str:
    """Who holds a Lease; "" if it was not renewed for a minute. (Machines' clocks differ.)"""
    found = read_lease(lease)
    renewed = (lease.get("spec") or {}).get("renewTime") or ""
    try:
        fresh = now - datetime.fromisoformat(renewed) < STALE
    except (ValueError, TypeError):
        fresh = False
    return found.holder if fresh else ""


async def _read(client: Client) -> Json:
    try:
        return await client.get(_KEY.path)
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise InstallationError(
            f"there is no {_KEY}: no pod is sent to Fairlead. Is it the right cluster? "
            "`kubectl config current-context` tells"
        ) from None


async def _written(client: Client, patch: Json) -> Json | None:
    """The object as stored; None if it has changed meanwhile, and the patch did not hold."""
    try:
        return await client.patch(_KEY.path, patch, "merge", query=_QUERY)
    except ClusterError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        return None


def _silent(live: Json) -> list[str]:
    return [each["name"] for each in live["webhooks"] if not each.get("rules")]


def _contended() -> InstallationError:
    return InstallationError(f"{_KEY} was changed by somebody at each of {_TRIES} tries: try again")
