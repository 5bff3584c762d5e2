"""Looks at everything that a rotation depends on, live, in the order that makes it safe."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography import x509

from certs.kept import Authority, Serving
from certs.rotation import Observed
from webhook.controller.certificates.published import bundles
from webhook.controller.certificates.secrets import asks, data_of
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from webhook.controller.certificates.places import Installation, Place
    from webhook.kube.client import Client

_SERVICE_LABEL: Final = "kubernetes.io/service-name"
# Seconds for one handshake; a replica within a cluster takes some milliseconds.
PATIENCE: Final = 2.0
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class ObservedCertificates:
    """What was observed, and the objects as they were read, for their versions."""

    observed: Observed
    authority: Mapping[str, Any] | None
    serving: Mapping[str, Any] | None
    configurations: tuple[tuple[Place, Mapping[str, Any]], ...]


class Observer:
    """Observes one installation. `ask` tells the serial number that a replica presents."""

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

        The authority is read last (see certs.rotation.Observed): what is published or issued by it
        is then never older than the object that it is written over.
        """
        # Both to their ends, so that of two errors the first is always the one that is told.
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
            renew_authority=asks(authority),
            renew_leaf=asks(serving),
        )
        return ObservedCertificates(observed, authority, serving, configurations)

    async def _configurations(self) -> tuple[tuple[Place, Mapping[str, Any]], ...]:
        found = [(place, await self._get(place.path)) for place in self._installation.places]
        return tuple((place, each) for place, each in found if each is not None)

    async def _replicas(self) -> tuple[int | None, ...]:
        # Some thousand endpoints would be some hundred slices; there are three.
        listing = await self._client.list(
            f"/apis/discovery.k8s.io/v1/namespaces/{self._installation.namespace}/endpointslices",
            lambda each: each,
            query={"labelSelector": f"{_SERVICE_LABEL}={self._installation.service}"},
        )
        found = serving_addresses(listing.items, self._installation.port)
        return await serial_numbers(found, self._ask)

    async def _secret(self, name: str) -> Mapping[str, Any] | None:
        return await self._get(self._installation.secret(name))

    async def _get(self, path: str) -> Mapping[str, Any] | None:
        try:
            return await self._client.get(path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None


async def serial_number(
    address: Address, server_name: str, *, patience: float = PATIENCE
) -> int | None:
    """The serial number of the leaf that is presented; None if there was no handshake in time.

    Nothing is verified, and nothing is sent: what is presented is compared, not trusted.
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
        return x509.load_der_x509_certificate(presented or b"").serial_number
    except ValueError:
        return None
    finally:
        # A polite end would wait for the replica's.
        writer.transport.abort()


async def serial_numbers(
    addresses: Sequence[Address | None], ask: Callable[[Address], Awaitable[int | None]]
) -> tuple[int | None, ...]:
    """Ask every address, several at once; None where there is none, or no answer."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(address: Address | None) -> int | None:
        if address is None:
            return None
        async with turns:
            return await ask(address)

    return tuple(await asyncio.gather(*(one(address) for address in addresses)))


class Address(NamedTuple):
    """An address, or a host's name, and a port."""

    host: str
    port: int


def serving_addresses(
    slices: Iterable[Mapping[str, Any]], port_name: str
) -> tuple[Address | None, ...]:
    """The address of each endpoint that serves, those that are about to end among them.

    The port is the one of that name, else a slice's only one; None where neither is there. (An
    endpoint whose condition `serving` is unknown serves: discovery.k8s.io/v1.)
    """
    return tuple(
        _address(endpoint, _port(each, port_name))
        for each in slices
        for endpoint in each.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("serving") is not False
    )


def _port(each: Mapping[str, Any], port_name: str) -> int | None:
    ports = [port for port in each.get("ports") or () if port.get("port")]
    named = [port for port in ports if port.get("name") == port_name]
    found = named or (ports if len(ports) == 1 else [])
    return int(found[0]["port"]) if found else None


def _address(endpoint: Mapping[str, Any], port: int | None) -> Address | None:
    # They are fungible: kube-proxy, too, takes the first.
    addresses = endpoint.get("addresses") or ()
    return Address(str(addresses[0]), port) if addresses and port else None
