"""The objects of an installation, by path."""

from __future__ import annotations

from webhook.controller.certificates.places import Installation, both, mutating, validating


def test_an_installation_is_that_of_the_manifests_unless_told_otherwise() -> None:
    """By the names that the manifests, the install command and the webhook go by."""
    installation = Installation()
    assert installation.secret(installation.authority) == (
        "/api/v1/namespaces/fairlead-system/secrets/fairlead-authority"
    )
    assert installation.secret(installation.serving).endswith("/fairlead-webhook-tls")
    assert installation.server_name == "fairlead-webhook.fairlead-system.svc"
    assert installation.places == (mutating("fairlead"), validating("fairlead"))


def test_a_place_has_the_path_of_its_kind() -> None:
    """All that publishing needs to know of a configuration."""
    place = mutating("mine")
    group = "/apis/admissionregistration.k8s.io/v1"
    assert place.collection == f"{group}/mutatingwebhookconfigurations"
    assert place.path == f"{place.collection}/mine"
    assert validating("mine").path == f"{group}/validatingwebhookconfigurations/mine"
    assert both("mine") == (mutating("mine"), validating("mine"))
