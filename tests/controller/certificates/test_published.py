"""The bundle in configurations of webhooks."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.controller.certificates.memory import INSTALLATION, entry
from webhook.controller.certificates.published import application, bundles

PLACE = INSTALLATION.places[0]
BUNDLE = b"-----BEGIN CERTIFICATE-----\n"
TEXT = b64encode(BUNDLE).decode()


def configuration(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"uid": "u", "resourceVersion": "7"}, "webhooks": list(entries)}


def test_of_each_webhook_that_calls_our_service_the_bundle_is_read() -> None:
    """Others, by another Service or a url, are not looked at."""
    seen = configuration(
        entry("ours", TEXT),
        entry("another name", TEXT, name="other"),
        entry("another namespace", TEXT, namespace="other"),
        {"name": "url", "clientConfig": {"url": "https://198.18.0.9", "caBundle": TEXT}},
        {"name": "nothing", "clientConfig": {}},
        {"name": "none at all"},
    )
    assert bundles(seen, INSTALLATION) == {"ours": BUNDLE}


@pytest.mark.parametrize("text", ["", "no base64 !", None])
def test_what_cannot_be_read_is_empty(text: str | None) -> None:
    """It is written anew then."""
    one = entry("ours")
    one["clientConfig"]["caBundle"] = text
    assert bundles(configuration(one), INSTALLATION) == {"ours": b""}
    del one["clientConfig"]["caBundle"]
    assert bundles(configuration(one), INSTALLATION) == {"ours": b""}


def test_an_absent_configuration_has_no_bundles() -> None:
    """Nor has one without webhooks, whose list is null."""
    assert bundles(None, INSTALLATION) == {}
    assert bundles({"webhooks": None}, INSTALLATION) == {}


def test_nothing_but_the_bundle_is_applied_to_what_was_read() -> None:
    """With the version and the uid, so that one that was made anew is looked at first."""
    seen = configuration(entry("a"), entry("b", TEXT), entry("c", name="other"))
    applied = application(PLACE, seen, INSTALLATION, BUNDLE)
    assert applied == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "fairlead", "uid": "u", "resourceVersion": "7"},
        "webhooks": [
            {"name": "a", "clientConfig": {"caBundle": TEXT}},
            {"name": "b", "clientConfig": {"caBundle": TEXT}},
        ],
    }
