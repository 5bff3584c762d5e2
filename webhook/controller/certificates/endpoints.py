"""Where the replicas of a Service can be reached, told from its EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Address(NamedTuple):
    """An address, or a host's name, and a port."""

    host: str
    port: int


def serving(slices: Iterable[Mapping[str, Any]], port_name: str) -> tuple[Address | None, ...]:
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
