"""DaemonSets in namespaces that are placed as a whole: what a doctor should say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.installation.doctor.cluster_states import deployment, seen
from tests.wording import Wording, mentions
from webhook import names
from webhook.installation.doctor.cluster_state import ReadKind
from webhook.installation.doctor.diagnose import diagnose
from webhook.installation.doctor.pod_checks import agents
from webhook.placement.nodes import CORDON, Node

Json = dict[str, Any]
POLICIES = {
    "p.yaml": b"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: amd64-only}
spec:
  defaults: {nodeSelector: {pool: a}}
  requirements: {nodeSelector: {kubernetes.io/arch: amd64}}
"""
}
ARM = {"nodeSelector": {"kubernetes.io/arch": "arm64"}}


def daemon_set(labels: Json | None = None, **spec: Any) -> Json:
    """One in the namespace `gpu`, as a list of the API server has it."""
    template = {"metadata": {"labels": labels or {"app": "x"}}, "spec": {"containers": [], **spec}}
    return {"metadata": {"namespace": "gpu", "name": "agent"}, "spec": {"template": template}}


def found(
    *sets: Json, policies: dict[str, bytes] | None = POLICIES, nodes: Sequence[Node] = ()
) -> list[str]:
    """What is said of these DaemonSets."""
    there = seen(
        daemon_sets=sets,
        namespaces={"gpu": {names.PLACE: names.PLACE_ALL}},
        deployments={names.WEBHOOK: deployment(names.WEBHOOK, 2)},
        policies=policies,
        nodes=nodes,
    )
    return [f"{each.what}\n{each.cure}" for each in agents(there)]


def test_pods_without_a_checked_requirement_are_reported(wording: Wording) -> None:
    """Where one would reject them, and only the namespace marks them."""
    (said,) = found(daemon_set(**ARM), daemon_set())
    mentions(said, "gpu/agent", "amd64-only", "'arm64'", names.RUN)
    wording(said)
    # A mark of its own holds it to the requirement, and its author was told.
    assert found(daemon_set({names.RUN: "r"}, **ARM)) == []
    # Policies that are not known, or wrong, are another check's.
    assert found(daemon_set(**ARM), policies=None) == []
    assert found(daemon_set(**ARM), policies={"p.yaml": b"nonsense"}) == []


def test_a_daemon_set_is_judged_by_the_nodes_that_it_runs_on(wording: Wording) -> None:
    """One that says nothing runs everywhere: also where a requirement would not let it."""
    nodes = [
        Node("arm-0", {"kubernetes.io/arch": "arm64"}, [CORDON]),
        Node("arm-1", {"kubernetes.io/arch": "arm64", "pool": "b"}, []),
        Node("amd-0", {"kubernetes.io/arch": "amd64"}, []),
        Node("gpu-0", {"kubernetes.io/arch": "arm64"}, [{"key": "gpu", "effect": "NoSchedule"}]),
    ]
    (said,) = found(daemon_set(), nodes=nodes)
    mentions(said, "gpu/agent", "2 of its 3 nodes", "arm-0", "kubernetes.io/arch=amd64")
    wording(said)
    assert found(daemon_set(nodeSelector={"kubernetes.io/arch": "amd64"}), nodes=nodes) == []
    assert found(daemon_set({names.RUN: "r"}), nodes=nodes) == []


def test_without_the_nodes_it_is_not_known() -> None:
    """Whether a DaemonSet runs where a requirement would not let it."""
    there = seen(unread={ReadKind.NODES: "forbidden"})
    (outcome,) = [each for each in diagnose(there) if each.name == "agents"]
    assert outcome.unread == (ReadKind.NODES,)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/etc/cni/net.d", "network"),
        ("/opt/cni/bin", "network"),
        ("/var/lib/kubelet/plugins/csi.example.com", "storage"),
        ("/var/lib/kubelet/plugins_registry/", "storage"),
    ],
)
def test_drivers_must_not_wait_for_the_webhook(path: str, what: str) -> None:
    """A node without its network cannot run the webhook that its network waits for."""
    (said,) = found(daemon_set(volumes=[{"name": "v", "hostPath": {"path": path}}]))
    mentions(said, "gpu/agent", what, f"kubectl label namespace gpu {names.PLACE}-")


def test_other_agents_are_none_of_its_business() -> None:
    """Such as those that read logs."""
    volumes = [{"name": "v", "hostPath": {"path": "/var/log"}}, {"name": "t", "emptyDir": {}}]
    assert found(daemon_set(volumes=volumes)) == []
