"""The sandbox is a real control plane: it schedules, runs pods, and goes away without a trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.manifests import pod, policy_text
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_webhook, stop_webhook
from webhook.sandbox.kubectl import Kubectl


def test_a_job_runs_to_its_end(kubectl: Kubectl) -> None:
    """kwok lets a Job's pods succeed, so that the job controller has something to count."""
    kubectl("create", "job", "short", "--image=example.invalid/none")
    kubectl("wait", "--for=condition=Complete", "job/short", "--timeout=120s")


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def renewed(plane: ControlPlane) -> str:
    """When a node's lease was last renewed."""
    return str(((plane.api.get(f"{LEASES}/spot-0") or {}).get("spec") or {}).get("renewTime"))


@pytest.fixture(scope="module", autouse=True)
def renewed_before(control_plane: ControlPlane) -> str:
    """When it was before this module's tests, for it is renewed each 10 s."""
    return renewed(control_plane)


@pytest.mark.last
def test_every_node_has_a_lease_that_is_kept_up(
    control_plane: ControlPlane, renewed_before: str
) -> None:
    """Without it the node controller would call a node NotReady before a minute is over."""
    api = control_plane.api
    for node in api.get("/api/v1/nodes")["items"]:
        lease = f"{LEASES}/{node['metadata']['name']}"
        found = eventually("the node has a lease", partial(api.get, lease))
        assert found["spec"]["leaseDurationSeconds"] == 40
    # None is not a renewal: it was there by now, and this is a later one.
    first = renewed(control_plane) if renewed_before == "None" else renewed_before
    eventually("a lease is renewed", lambda: renewed(control_plane) != first, period=0.1)


def test_a_deleted_pod_is_gone_at_once(kubectl: Kubectl) -> None:
    """kwok ends a deleted pod without its grace period."""
    kubectl.create(pod("short-lived", labels={}))
    kubectl("wait", "--for=condition=Ready", "pod/short-lived", "--timeout=120s")
    kubectl("delete", "pod", "short-lived", "--timeout=120s")
    assert kubectl.json("get", "pods")["items"] == []


@pytest.fixture(scope="module")
def two(start_module_plane: StartControlPlane) -> ControlPlane:
    """A control plane of two components, with a flag of its own."""
    settings = Settings(
        components=("etcd", "kube-apiserver"),
        extra_arguments={"kube-apiserver": ["--default-not-ready-toleration-seconds=77"]},
    )
    return start_module_plane(settings)


def test_a_control_plane_of_two_components_takes_flags_of_its_own(
    two: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> None:
    """etcd and the API server alone accept pods, and extra flags reach the API server."""
    kubectl = kubectl_for(two)
    kubectl.create(pod("alone", labels={}))
    tolerations = kubectl.json("get", "pod", "alone")["spec"]["tolerations"]
    assert tolerations[0]["tolerationSeconds"] == 77


def test_a_component_can_crash_and_come_back(two: ControlPlane) -> None:
    """An API server that was killed serves the same objects once it is started again."""
    plane = two
    plane.create_namespace("kept")
    plane.stop_component("kube-apiserver")
    assert not plane.api.ready()
    plane.start_component("kube-apiserver")
    plane.wait_for_api_server()
    assert plane.api.get("/api/v1/namespaces/kept")


def test_a_webhook_can_be_added_to_the_control_plane_for_one_namespace(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    """While it runs it places the namespace's pods, and no trace of it stays afterwards."""
    arch = policy_text("everywhere", "defaults: {nodeSelector: {kubernetes.io/arch: amd64}}")
    (tmp_path / "policy.yaml").write_text(arch)
    name = f"only-{namespace}"
    webhook = start_webhook(control_plane, tmp_path, name=name, namespaces=[namespace])
    member = pod("during")
    kubectl.create(member)
    stop_webhook(control_plane, webhook)
    assert name not in control_plane.pids
    member["metadata"]["name"] = "after"
    kubectl.create(member)
    during, after = (kubectl.json("get", "pod", name) for name in ("during", "after"))
    assert during["spec"]["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    assert "nodeSelector" not in after["spec"]
