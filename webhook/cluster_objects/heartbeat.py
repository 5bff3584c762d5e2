"""The renewals of the controller's Lease: what it wrote is as old as the last one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError
from webhook.kube.lease import parse_lease

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client

# Four times the Lease's duration, because clocks of machines differ.
STALE: Final = timedelta(minutes=1)
_LEASE: Final = CollectionPath("coordination.k8s.io/v1", "leases", names.NAMESPACE).path_of(
    names.CONTROLLER
)


def holder(lease: Mapping[str, Any], now: datetime) -> str:
    """Return the holder of a Lease; "" if it was not renewed for a minute."""
    return parse_lease(lease).holder if _is_fresh(lease, now) else ""


async def silence(client: Client, now: datetime) -> str:
    """Return since when no controller has written statuses, for people; "" while one leads.

    Also "" if it is not known: without the right to read the Lease, or if there is none.
    """
    try:
        lease = await client.find(_LEASE)
    except ClusterError:
        return ""
    if lease is None or _is_fresh(lease, now):
        return ""
    renewed = (lease.get("spec") or {}).get("renewTime") or "an unknown time"
    return (
        f"statuses are as of {str(renewed)[:19]}: no controller has looked since; "
        "`fairlead doctor --check leader` has the cure"
    )


def _is_fresh(lease: Mapping[str, Any], now: datetime) -> bool:
    renewed = (lease.get("spec") or {}).get("renewTime") or ""
    try:
        return now - datetime.fromisoformat(renewed) < STALE
    except (ValueError, TypeError):
        return False
