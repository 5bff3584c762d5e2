"""Read everything that a rotation depends on, live and in a safe order, and watch for changes."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography import x509

from certs.kept import Authority, Serving
from certs.rotation import Observed
from webhook.api_paths import CollectionPath
from webhook.controller.certificates.certificate_objects import (
    bundles,
    is_renewal_requested,
)
from webhook.kube.named_object import NamedObject
from webhook.kube.secrets import data_of
from webhook.turns import gather_some

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.controller.certificates.certificate_objects import Installation, Place
    from webhook.kube.client import Client
    from webhook.kube.watches import Watches

_SERVICE_LABEL: Final = "kubernetes.io/service-name"
# Seconds for one TLS handshake; within a cluster it takes milliseconds.
HANDSHAKE_TIMEOUT_SECONDS: Final = 2.0
CONCURRENT_HANDSHAKES: Final = 8


@dataclass(frozen=True, slots=True)
class ObservedCertificates:
    """The observed state, and the objects as read, for their resource versions."""

    observed: Observed
    authority: Mapping[str, Any] | None
    serving: Mapping[str, Any] | None
    configurations: tuple[tuple[Place, Mapping[str, Any]], ...]


class Observer:
    """Observes one installation. `ask` returns the serial number that a replica presents."""

    def __init__(
        self,
        client: Client,
        installation: Installation,
        *,
        ask: Callable[[Address], Awaitable[int | None]] | None = None,
    ) -> None:
        self._client = client
        self._installation = installation
        self._ask = ask or partial(serial_number, server_name=installation.server_name)

    async def observe(self) -> ObservedCertificates:
        """Read everything once. Raises ClusterError.

        The authority is read last (see certs.rotation.Observed). What is published or issued from
        it is then never older than the object that is replaced.
        """
        # Both run to completion, so that of two errors always the first one is raised.
        configurations, replicas = await asyncio.gather(
            self._configurations(), self._replicas(), return_exceptions=True
        )
        if isinstance(configurations, BaseException):
            raise configurations
        if isinstance(replicas, BaseException):
            raise replicas
        serving = await self._secret(self._installation.serving)
        authority = await self._secret(self._installation.authority)
        published = (
            bundle
            for _, configuration in configurations
            for bundle in bundles(configuration, self._installation).values()
        )
        observed = Observed(
            Authority.read(data_of(authority)),
            Serving.read(data_of(serving)),
            tuple(published),
            replicas,
            renew_authority=is_renewal_requested(authority),
            renew_leaf=is_renewal_requested(serving),
        )
        return ObservedCertificates(observed, authority, serving, configurations)

    async def _configurations(self) -> tuple[tuple[Place, Mapping[str, Any]], ...]:
        configurations = [
            (place, await self._client.find(place.path)) for place in self._installation.places
        ]
        return tuple(
            (place, configuration)
            for place, configuration in configurations
            if configuration is not None
        )

    async def _replicas(self) -> tuple[int | None, ...]:
        # One slice has up to 100 endpoints, and the usual number of replicas is three.
        listing = await self._client.list(
            CollectionPath("discovery.k8s.io/v1", "endpointslices", self._installation.namespace),
            lambda raw: raw,
            query={"labelSelector": f"{_SERVICE_LABEL}={self._installation.service}"},
        )
        addresses = serving_addresses(listing.items, self._installation.port)
        return await serial_numbers(addresses, self._ask)

    async def _secret(self, name: str) -> Mapping[str, Any] | None:
        return await self._client.find(self._installation.secret(name))


async def serial_number(
    address: Address, server_name: str, *, patience: float = HANDSHAKE_TIMEOUT_SECONDS
) -> int | None:
    """Return the serial number of the presented leaf; None without a handshake in time."""
    leaf = await presented_leaf(address, server_name, patience=patience)
    return leaf.serial_number if leaf else None


async def presented_leaf(
    address: Address, server_name: str, *, patience: float = HANDSHAKE_TIMEOUT_SECONDS
) -> x509.Certificate | None:
    """Return the presented leaf; None without a handshake in time.

    Nothing is verified or sent: the certificate is compared, not trusted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(
                address.host, address.port, ssl=context, server_hostname=server_name
            )
    except (OSError, ValueError):
        return None
    try:
        session: ssl.SSLObject = writer.get_extra_info("ssl_object")
        presented = session.getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(presented or b"")
    except ValueError:
        return None
    finally:
        # A graceful close would wait for the replica.
        writer.transport.abort()


async def serial_numbers(
    addresses: Sequence[Address | None], ask: Callable[[Address], Awaitable[int | None]]
) -> tuple[int | None, ...]:
    """Return the serial number per address; None for a missing address or answer."""

    async def ask_if_any(address: Address | None) -> int | None:
        return None if address is None else await ask(address)

    return tuple(await gather_some(CONCURRENT_HANDSHAKES, ask_if_any, addresses))


class Address(NamedTuple):
    """A host name or an IP address, and a port."""

    host: str
    port: int


def serving_addresses(
    slices: Iterable[Mapping[str, Any]], port_name: str
) -> tuple[Address | None, ...]:
    """Return the address of each endpoint that serves, including terminating ones.

    The port is the one of that name, else a slice's only one; None if neither exists. An endpoint
    whose condition `serving` is unknown serves (discovery.k8s.io/v1).
    """
    return tuple(
        _address(endpoint, _port(endpoint_slice, port_name))
        for endpoint_slice in slices
        for endpoint in endpoint_slice.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("serving") is not False
    )


def _port(endpoint_slice: Mapping[str, Any], port_name: str) -> int | None:
    ports = [port for port in endpoint_slice.get("ports") or () if port.get("port")]
    named = [port for port in ports if port.get("name") == port_name]
    candidates = named or (ports if len(ports) == 1 else [])
    return int(candidates[0]["port"]) if candidates else None


def _address(endpoint: Mapping[str, Any], port: int | None) -> Address | None:
    # The addresses of an endpoint are fungible; kube-proxy uses the first as well.
    addresses = endpoint.get("addresses") or ()
    return Address(str(addresses[0]), port) if addresses and port else None


@contextmanager
def watch(
    watches: Watches, installation: Installation, changed: Callable[[], None]
) -> Iterator[None]:
    """Call `changed` after each change of one of the objects, within the block.

    Each object is watched by name, so a right with resourceNames is enough. Only the versions are
    kept, so that no cache holds the authority's private key.
    """
    objects = [
        (installation.secrets, installation.authority),
        (installation.secrets, installation.serving),
        *((place.collection, place.name) for place in installation.places),
    ]
    with watches.scope() as scope:
        for collection, name in objects:
            NamedObject(scope, collection, name, _version).subscribe(lambda _: changed())
        yield


def _version(raw: dict[str, Any]) -> str:
    return str(raw["metadata"]["resourceVersion"])
