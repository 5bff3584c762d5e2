"""Puts the keeper of certificates together, for `fairlead controller --certificates`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from certs.issue import Names, service_names
from certs.rotation import Terms
from webhook.controller.certificates.keeper import Keeper
from webhook.controller.certificates.metrics import CertificateMetrics
from webhook.controller.certificates.observe import Observer
from webhook.controller.certificates.places import Installation, both
from webhook.controller.certificates.watch import watch
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from webhook.kube.client import Client
    from webhook.kube.writer import Writer


@dataclass(frozen=True, slots=True)
class Certificates:
    """What `fairlead controller` was told of certificates. `settle` is in seconds."""

    settle: float
    names: tuple[str, ...]


def make_keeper(
    settings: Certificates,
    namespace: str,
    configuration: str,
    client: Client,
    writer: Writer,
    registry: CollectorRegistry,
) -> Keeper:
    """The keeper for the installation in `namespace`, which publishes in its configurations."""
    installation = Installation(namespace, places=both(configuration))
    return Keeper(
        Observer(client, installation),
        writer,
        installation,
        Terms(
            service_names(installation.service, namespace, _extra(settings.names)),
            settle=timedelta(seconds=settings.settle),
        ),
        CertificateMetrics(registry),
        watch=partial(watch, client, installation),
    )


def condition(keeper: Keeper) -> Condition:
    """How the certificates are, for /readyz."""
    return Condition(keeper.ready, keeper.reason)


def _extra(given: tuple[str, ...]) -> Names:
    dns: list[str] = []
    addresses: list[str] = []
    for name in given:
        try:
            # As a certificate has it: it is compared with what the leaf says.
            addresses.append(str(ipaddress.ip_address(name)))
        except ValueError:
            dns.append(name)
    return Names(tuple(dns), tuple(addresses))
