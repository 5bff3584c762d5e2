"""Which objects an installation has, and in what order."""

from __future__ import annotations

import pytest

from webhook.errors import InstallationError
from webhook.installation.manifests import overlays, render, shipped_classes
from webhook.installation.object_kinds import in_order, key, key_of


@pytest.mark.parametrize("overlay", overlays())
def test_every_kind_of_the_manifests_is_known(overlay: str) -> None:
    """No object is there twice either."""
    objects = [*render((overlay,)).values(), *shipped_classes()]
    assert len(in_order(objects)) == len(objects)


@pytest.mark.parametrize("overlay", overlays())
def test_what_others_need_comes_first(overlay: str) -> None:
    """And what pods are sent by, or denied by, comes last."""
    objects = [*render((overlay,)).values(), *shipped_classes()]
    order = [each.kind.name for each in in_order(objects)]
    assert list(dict.fromkeys(order))[:2] == ["CustomResourceDefinition", "Namespace"]
    if "Deployment" in order:
        started = order.index("Deployment")
        assert order.index("CapacityClass") < started
        assert order.index("RoleBinding") < started
        assert order.index("MutatingWebhookConfiguration") > started
        assert order.index("ValidatingWebhookConfiguration") > started
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        if kind in order:
            assert order.index(kind) > order.index("MutatingWebhookConfiguration")


def test_of_two_objects_of_one_name_the_later_counts() -> None:
    """So that overlays can be joined."""
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}
    other = {**one, "data": {"a": "b"}}
    assert list(in_order([one, other]).values()) == [other]


def test_paths_are_the_api_servers() -> None:
    """With and without a group, with and without a namespace."""
    assert key_of("Namespace", "n").path == "/api/v1/namespaces/n"
    deployment = key_of("Deployment", "d", "n")
    assert deployment.path == "/apis/apps/v1/namespaces/n/deployments/d"
    assert str(deployment) == "Deployment n/d"
    assert str(key_of("ClusterRole", "c")) == "ClusterRole c"


def test_another_kind_is_a_bug() -> None:
    """It is not applied to who knows where."""
    with pytest.raises(InstallationError, match="this is a bug"):
        key({"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "p"}})
