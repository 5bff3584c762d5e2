"""A Lease of coordination.k8s.io/v1: what it says, and what it is to say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Lease(NamedTuple):
    """A Lease as the API server keeps it; client-go's electors read and write the same fields.

    Its times are for people to read: machines' clocks differ, and nothing is decided by them.
    """

    version: str
    """The resourceVersion: another one with every change, so with every renewal."""
    holder: str
    """Who holds it; empty if it was released."""
    duration: float
    """Seconds for which the holder's last renewal is good; 0.0 if the Lease does not say."""
    transitions: int
    """How often the holder has changed."""
    acquired: str
    """Since when it has its holder, RFC 3339; empty if the Lease does not say."""


def read(raw: Mapping[str, Any]) -> Lease:
    """The Lease in the API server's answer."""
    spec = raw.get("spec") or {}
    return Lease(
        version=raw["metadata"]["resourceVersion"],
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )


def held(before: Lease | None, holder: str, duration: float, now: datetime) -> dict[str, Any]:
    """The spec by which `holder` takes the Lease, or renews it. `now` is the wall clock's, in UTC.

    A new holder counts as a transition; the first one of all does not, as with client-go.
    """
    written = to_microsecond(now)
    same = before is not None and before.holder == holder
    transitions = 0 if before is None else before.transitions + (not same)
    return {
        "holderIdentity": holder,
        # The API server takes whole seconds, and no 0.
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": (before.acquired if before and same else "") or written,
        "renewTime": written,
        "leaseTransitions": transitions,
    }


def released(before: Lease, now: datetime) -> dict[str, Any]:
    """The spec by which the holder of `before` gives it back: anyone may take it at once."""
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": before.acquired or to_microsecond(now),
        "renewTime": to_microsecond(now),
        "leaseTransitions": before.transitions,
    }
