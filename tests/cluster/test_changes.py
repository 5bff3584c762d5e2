"""What changes in the cluster while the webhook runs: namespaces, and their labels."""

from __future__ import annotations

import uuid

import pytest

from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import NewNamespace, Space, stamp
from tests.control_planes import clear_namespace
from tests.eventually import eventually
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = policy_text(
    "batch",
    "match: {namespaceSelector: {matchLabels: {tier: batch}}}",
    "defaults: {nodeSelector: {cloud.google.com/gke-nodepool: on-demand}}",
)
POOL = {"cloud.google.com/gke-nodepool": "on-demand"}


def placed(space: Space) -> bool:
    """Whether a pod that is created now is placed by the policy."""
    shown = space.create(pod("probe"), dry_run=True)
    assert (shown["spec"].get("nodeSelector") == POOL) == ("batch" in stamp(shown)["policies"])
    return "batch" in stamp(shown)["policies"]


def test_labels_of_a_namespace_that_change_count_at_once(
    new_namespace: NewNamespace, cluster_kubectl: Kubectl
) -> None:
    """Added, changed, removed: the watch tells, and no restart is needed."""
    space = new_namespace({})
    assert not placed(space)
    for change, expected in (("tier=batch", True), ("tier=web", False), ("tier=batch", True)):
        cluster_kubectl("label", "--overwrite", "namespace", space.name, change)
        eventually(f"{change} counts", lambda: placed(space) == expected)  # noqa: B023
    cluster_kubectl("label", "namespace", space.name, "tier-")
    eventually("the label counts no more", lambda: not placed(space))


def test_a_pod_in_a_namespace_made_an_instant_ago_is_placed_by_its_labels(
    control_plane: ControlPlane,
) -> None:
    """Where the watch has not told of it yet, the API server is asked: never a guess."""
    made = [f"test-{uuid.uuid4().hex[:10]}" for _ in range(20)]
    account = "serviceaccounts"
    for name in made:
        api = control_plane.api
        labels = {"tier": "batch"}
        api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        # Without it no pod is admitted, and to wait for it would be to wait for the watch too.
        where = f"/api/v1/namespaces/{name}"
        api.call("POST", f"{where}/{account}", {"metadata": {"name": "default"}})
        created = api.create(f"{where}/pods", pod("p"))
        assert created["spec"]["nodeSelector"] == POOL
    for name in made:
        clear_namespace(control_plane, name)
