"""The objects of an installation, by path."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.controller.certificates.memory import INSTALLATION, entry
from webhook import names
from webhook.controller.certificates.certificate_objects import (
    OPAQUE,
    TLS,
    Installation,
    application,
    both,
    bundles,
    is_renewal_requested,
    mutating,
    new_secret,
    replaced_secret,
    validating,
)
from webhook.kube.secrets import data_of

OLD = b64encode(b"old").decode()
NEW = b64encode(b"new").decode()
PLACE = INSTALLATION.places[0]
BUNDLE = b"-----BEGIN CERTIFICATE-----\n"
TEXT = b64encode(BUNDLE).decode()


def test_an_installation_has_the_names_of_the_manifests_by_default() -> None:
    """By the names that the manifests, the install command and the webhook go by."""
    installation = Installation()
    assert installation.secret(installation.authority) == (
        "/api/v1/namespaces/fairlead-system/secrets/fairlead-authority"
    )
    assert installation.secret(installation.serving).endswith("/fairlead-webhook-tls")
    assert installation.server_name == "fairlead-webhook.fairlead-system.svc"
    assert installation.places == (mutating("fairlead"), validating("fairlead"))


def test_a_place_has_the_path_of_its_kind() -> None:
    place = mutating("mine")
    group = "/apis/admissionregistration.k8s.io/v1"
    assert place.collection == f"{group}/mutatingwebhookconfigurations"
    assert place.path == f"{place.collection}/mine"
    assert validating("mine").path == f"{group}/validatingwebhookconfigurations/mine"
    assert both("mine") == (mutating("mine"), validating("mine"))


def secret(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "s",
            "resourceVersion": "7",
            "annotations": {names.ROTATE: "now", "note": "stays"},
        },
        "type": "Opaque",
        "data": {"tls.crt": OLD, "staged.key": OLD, "other": OLD},
        **more,
    }


def test_data_is_decoded_and_absence_is_nothing() -> None:
    """A Secret without data has a null there."""
    assert data_of(secret()) == {"tls.crt": b"old", "staged.key": b"old", "other": b"old"}
    assert data_of({"data": None}) == data_of(None) == {}


def test_a_request_is_an_annotation() -> None:
    assert is_renewal_requested(secret())
    assert not is_renewal_requested(secret(metadata={"annotations": None}))
    assert not is_renewal_requested(None)


def test_what_is_kept_replaces_all_of_ours_and_nothing_else() -> None:
    """At the version that was read; a key that is kept no more goes."""
    before = secret()
    body = replaced_secret(before, {"tls.crt": b"new"}, answered=True)
    assert body["data"] == {"tls.crt": NEW, "other": OLD}
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"] == {"note": "stays"}
    assert before == secret()


def test_a_request_that_is_not_answered_stays() -> None:
    body = replaced_secret(secret(), {}, answered=False)
    assert body["metadata"]["annotations"] == {names.ROTATE: "now", "note": "stays"}


def test_a_type_that_demands_its_keys_has_them() -> None:
    """Empty, where an authority does not sign yet."""
    body = replaced_secret(secret(type=TLS), {"staged.crt": b"new"}, answered=False)
    assert body["data"] == {"tls.crt": "", "tls.key": "", "staged.crt": NEW, "other": OLD}
    assert new_secret("s", TLS, {"tls.crt": b"new"})["data"] == {
        "tls.crt": NEW,
        "tls.key": "",
    }


def test_a_new_secret_has_its_type() -> None:
    body = new_secret("s", OPAQUE, {"tls.crt": b"new"})
    assert body["type"] == "Opaque"
    assert body["data"] == {"tls.crt": NEW}
    assert body["metadata"] == {"name": "s", "labels": {"app.kubernetes.io/name": "fairlead"}}


def configuration(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"uid": "u", "resourceVersion": "7"}, "webhooks": list(entries)}


def test_of_each_webhook_that_calls_our_service_the_bundle_is_read() -> None:
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
    one = entry("ours")
    one["clientConfig"]["caBundle"] = text
    assert bundles(configuration(one), INSTALLATION) == {"ours": b""}
    del one["clientConfig"]["caBundle"]
    assert bundles(configuration(one), INSTALLATION) == {"ours": b""}


def test_an_absent_configuration_has_no_bundles() -> None:
    assert bundles(None, INSTALLATION) == {}
    assert bundles({"webhooks": None}, INSTALLATION) == {}


def test_only_the_bundle_is_applied_at_the_version_that_was_read() -> None:
    """With the version and the uid, so that one that was made again is looked at first."""
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
