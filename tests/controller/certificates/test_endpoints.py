"""Where replicas can be reached."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.controller.certificates.observe import Address, serving_addresses

HTTPS = {"name": "https", "port": 8443}
HEALTH = {"name": "health", "port": 8081}


def piece(*endpoints: dict[str, Any], ports: Any = (HTTPS,)) -> dict[str, Any]:
    """An EndpointSlice."""
    return {"addressType": "IPv4", "endpoints": list(endpoints), "ports": ports}


def endpoint(address: str, **conditions: bool | None) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def test_those_that_serve_are_asked_ready_or_not() -> None:
    """One that is about to end serves still; where nothing is said it serves."""
    slices = [
        piece(endpoint("198.18.0.1", ready=True, serving=True)),
        piece(
            endpoint("198.18.0.2", ready=False, serving=True, terminating=True),
            endpoint("198.18.0.3", ready=False, serving=False),
            endpoint("198.18.0.4", serving=None),
            {"addresses": ["198.18.0.5"]},
        ),
    ]
    hosts = [each.host for each in serving_addresses(slices, "https") if each]
    assert hosts == ["198.18.0.1", "198.18.0.2", "198.18.0.4", "198.18.0.5"]


@pytest.mark.parametrize(
    ("ports", "found"),
    [
        ([HEALTH, HTTPS], 8443),
        ([{"name": "", "port": 9443}], 9443),
        ([{"name": "", "port": None}], None),
        ([HEALTH, {"name": "metrics", "port": 9090}], None),
        (None, None),
    ],
)
def test_the_port_is_the_named_one_or_the_only_one(ports: Any, found: int | None) -> None:
    """A replica whose port nobody can tell is one that cannot be asked, and not left out."""
    expected = Address("198.18.0.1", found) if found else None
    assert serving_addresses([piece(endpoint("198.18.0.1"), ports=ports)], "https") == (expected,)


def test_without_endpoints_there_is_nobody_to_ask() -> None:
    """Their list is null then."""
    assert serving_addresses([{"endpoints": None, "ports": None}], "https") == ()
