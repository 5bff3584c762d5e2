"""Makes what writes the status of policies, from what `fairlead controller` was told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.controller.policies.reporter import PolicyReporter
from webhook.kube.replicas import Replica, running
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.kube.client import Client
    from webhook.kube.writer import Writer


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """What `fairlead controller` was told of it.

    interval:  seconds between the writes of one policy's counts
    addresses: host and port of each replica's /metrics; empty: those of the webhook's pods
    """

    interval: float
    addresses: tuple[tuple[str, int], ...]


def make_reporter(
    settings: PolicyStatus, namespace: str, client: Client, writer: Writer
) -> PolicyReporter:
    """What writes the statuses, for the webhook in `namespace`."""

    async def replicas() -> Sequence[Replica]:
        if not settings.addresses:
            return await running(client, namespace)
        named = [(f"{host}:{port}", host, port) for host, port in settings.addresses]
        return [Replica(name, name, host, port, leaving=False) for name, host, port in named]

    return PolicyReporter(client, writer, replicas, interval=settings.interval)


def condition(reporter: PolicyReporter) -> Condition:
    """How the statuses fare, for /readyz. Runs need none of it: it is always ready."""
    return Condition(ready=True, reason=reporter.reason)
