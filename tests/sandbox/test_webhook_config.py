"""The registration of a webhook beside the control plane."""

from __future__ import annotations

from webhook.interception import webhooks
from webhook.sandbox.fairlead import mutating_webhook_configuration

URL = "https://127.0.0.1:8443/mutate"


def test_it_has_the_entries_of_an_installation() -> None:
    """By the same function, at an address of this machine."""
    made = mutating_webhook_configuration(URL, b"pem", only_namespaces=["trial"], name="other")
    assert made["metadata"] == {"name": "other"}
    assert made["webhooks"] == webhooks(url=URL, ca_bundle=b"pem", only_namespaces=["trial"])
