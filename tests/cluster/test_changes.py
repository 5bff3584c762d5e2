"""What changes in the cluster while the webhook runs: namespaces, their labels, other webhooks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.cluster.manifests import pod
from tests.cluster.spaces import Json, NewNamespace, Running, Space, stamp
from tests.control_planes import clear_namespace
from tests.eventually import eventually
from tests.server.serving import running as serving
from webhook.admission import review
from webhook.admission.app import read_body
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import mutating_webhook_configuration
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: batch}
spec:
  match: {namespaceSelector: {matchLabels: {tier: batch}}}
  defaults: {nodeSelector: {cloud.google.com/gke-nodepool: on-demand}}
"""
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


async def sidecar(scope: Scope, receive: Receive, send: Send) -> None:
    """A webhook that adds a label and a container to every pod that lacks them."""
    request = review.parse(await read_body(scope, receive))
    patch: list[Any] = []
    if "sidecar" not in request.pod["metadata"]["labels"]:
        container = {"name": "sidecar", "image": "example.invalid/none"}
        patch = [
            {"op": "add", "path": "/metadata/labels/sidecar", "value": "added"},
            {"op": "add", "path": "/spec/containers/-", "value": container},
        ]
    answer = review.answer(request.uid, allowed=True, patch=patch)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer})


@pytest.fixture
def sidecar_webhook(control_plane: ControlPlane) -> Iterator[None]:
    """That webhook, registered under a name that comes after ours, and called after us."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    with serving(sidecar) as server:
        configuration = mutating_webhook_configuration(
            f"https://127.0.0.1:{server.https_port}/", server.trust.certificate, name="sidecar"
        )
        control_plane.api.create(path, configuration)
        try:
            yield
        finally:
            control_plane.api.call("DELETE", f"{path}/sidecar")


def test_a_webhook_that_comes_after_us_makes_no_second_patch_of_ours(
    running: Running,
    sidecar_webhook: None,  # noqa: ARG001
    new_namespace: NewNamespace,
) -> None:
    """We are called again, since it changed the pod, and there is nothing left to do or count."""
    space = new_namespace({"tier": "batch"})
    # The API server takes a moment to hear of the other webhook.

    def labels() -> Json:
        found: Json = space.create(pod("probe"), dry_run=True)["metadata"]["labels"]
        return found

    eventually("the other webhook is asked", lambda: "sidecar" in labels())

    def counted(result: str) -> float:
        return running.metric("fairlead_decisions_total", result=result, policy="batch")

    before = counted("placed"), counted("unchanged")
    created = space.create(pod("p"))
    assert [one["name"] for one in created["spec"]["containers"]] == ["main", "sidecar"]
    assert created["spec"]["nodeSelector"] == POOL
    assert (counted("placed"), counted("unchanged")) == (before[0] + 1, before[1])
    (annotations,) = space.audited("p")
    calls = {
        key.partition("/")[2]: (json.loads(text)["configuration"], json.loads(text)["mutated"])
        for key, text in annotations.items()
        if key.startswith("mutation.webhook.admission.k8s.io/")
    }
    ours = {name: mutated for name, (who, mutated) in calls.items() if who == "fairlead"}
    assert ours == {"round_0_index_0": True, "round_1_index_0": False}
    assert ("sidecar", True) in calls.values()
