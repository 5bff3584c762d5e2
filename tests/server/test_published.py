"""What the API server is told to trust is read from the entries that go to our Service."""

from __future__ import annotations

import base64
from typing import Any

from webhook.server.published import Published, Service, published

SERVICE = Service("fairlead-system", "fairlead-webhook")


def entry(name: str, bundle: bytes | None, service: Service | None = SERVICE) -> dict[str, Any]:
    """An entry of a configuration, by Service or by URL."""
    client: dict[str, Any] = {"url": "https://127.0.0.1/mutate"}
    if service:
        client = {"service": {"namespace": service.namespace, "name": service.name}}
    if bundle is not None:
        client["caBundle"] = base64.b64encode(bundle).decode()
    return {"name": name, "clientConfig": client}


def test_every_bundle_of_ours_counts_and_equal_ones_once() -> None:
    """Entries to other Services, and to an address, are not ours."""
    configuration = {
        "webhooks": [
            entry("a", b"one"),
            entry("b", b"one"),
            entry("c", b"two"),
            entry("d", b"three", Service("elsewhere", "fairlead-webhook")),
            entry("e", b"four", None),
        ]
    }
    assert published(configuration, SERVICE) == (
        Published("caBundle of webhook a", b"one"),
        Published("caBundle of webhook c", b"two"),
    )


def test_a_bundle_that_is_not_there_or_no_base64_is_empty() -> None:
    """Which is not the same as no entry."""
    garbled = entry("b", None)
    garbled["clientConfig"]["caBundle"] = "a"
    for one in (entry("a", None), garbled):
        (found,) = published({"webhooks": [one]}, SERVICE)
        assert found.bundle == b""
    assert published({"webhooks": None}, SERVICE) == ()


def test_the_name_that_the_api_server_checks_is_the_services() -> None:
    """And no other of its names."""
    assert SERVICE.host == "fairlead-webhook.fairlead-system.svc"
