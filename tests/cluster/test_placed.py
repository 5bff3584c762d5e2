"""Pods of every origin come out of the real API server as the policies say."""

from __future__ import annotations

import pytest

from tests.cluster.manifests import (
    SPOT,
    SPOT_CLASS,
    SPOT_TAINT,
    Json,
    pod,
    policy_text,
    required_terms,
    template,
    within,
    workload,
)
from tests.cluster.spaces import NewNamespace, Running, Space, is_stamped, stamp
from tests.objects import controlled_by
from webhook import names

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = (
    SPOT_CLASS
    + policy_text(
        "on-spot",
        "match: {namespaceSelector: {matchLabels: {test: spot}}}",
        "overrides: {capacity: [{class: spot, mode: Constrain}]}",
    )
    + policy_text(
        "labelled",
        "match: {namespaceSelector: {matchLabels: {test: labels}}}",
        "defaults: {labels: {team: research, app: theirs}}",
    )
    + policy_text(
        "ends-soon",
        "match: {namespaceSelector: {matchLabels: {test: ends}}}",
        "defaults: {terminationGracePeriodSeconds: 20}",
        "requirements: {terminationGracePeriodSeconds: 60}",
    )
    + policy_text(
        "notebooks-on-gpu",
        "match: {namespaceSelector: {matchLabels: {test: whole}}, kinds: [notebook]}",
        "defaults:",
        "  nodeSelector: {cloud.google.com/gke-nodepool: gpu}",
        "  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]",
    )
)
ON_SPOT = within(SPOT, "true")


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace whose runs go to spot nodes."""
    return new_namespace({"test": "spot"})


def assert_on_spot(seen: Json) -> None:
    """The pod requires spot nodes, tolerates their taint, is stamped, and is bound to one."""
    assert all(ON_SPOT in expressions for expressions in required_terms(seen))
    assert SPOT_TAINT in seen["spec"]["tolerations"]
    assert set(stamp(seen)["policies"]) == {"on-spot"}
    assert "spot" in seen["spec"]["nodeName"]


def test_a_pod_by_generate_name(space: Space) -> None:
    """It has neither a name nor a uid yet when it is placed."""
    nameless = pod("")
    nameless["metadata"] = {"generateName": "nameless-", "labels": {names.RUN: "r"}}
    for _ in range(2):
        space.create(nameless)
    for seen in space.wait_for_pods(2):
        assert seen["metadata"]["name"].startswith("nameless-")
        assert_on_spot(seen)


def test_a_daemon_set_is_left_alone_but_stamped(space: Space) -> None:
    """Its controller reads its own template, so each node keeps its pod; the stamp says why."""
    space.create(workload("DaemonSet", "agent"))
    space.kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
    # The four nodes without a taint.
    for seen in space.wait_for_pods(4):
        assert seen["spec"]["nodeName"].startswith("on-demand-")
        assert "DaemonSet" in stamp(seen)["leftAlone"]
        # The controller's own term by the node's name is all there is.
        required = seen["spec"]["affinity"]["nodeAffinity"]
        (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert "matchExpressions" not in term
        assert SPOT_TAINT not in seen["spec"]["tolerations"]


def test_a_forged_owner_reference_to_a_daemon_set_does_not_help(space: Space) -> None:
    """The request's user tells that its controller did not make the pod: it is placed."""
    agent = space.create(workload("DaemonSet", "agent", template(nodeSelector={"no": "where"})))
    forged = pod("forged")
    forged["metadata"]["ownerReferences"] = controlled_by(agent)
    created = space.create(forged)
    assert created["metadata"]["ownerReferences"]
    assert required_terms(created) == [[ON_SPOT]]
    (seen,) = space.wait_for_pods(1)
    assert_on_spot(seen)


def test_labels_from_a_policy_make_no_runaway(new_namespace: NewNamespace) -> None:
    """Labels are added, none is changed, and so the ReplicaSet keeps the pods that it made."""
    space = new_namespace({"test": "labels"})
    space.create(workload("Deployment", "d", replicas=2))
    space.kubectl("rollout", "status", "deployment/d", "--timeout=120s")
    first = {seen["metadata"]["uid"] for seen in space.wait_for_pods(2)}
    # Long enough for hundreds of pods, were each one lost to its ReplicaSet.
    space.kubectl("scale", "deployment/d", "--replicas=3")
    space.kubectl("rollout", "status", "deployment/d", "--timeout=120s")
    found = space.wait_for_pods(3)
    assert first < {seen["metadata"]["uid"] for seen in found}
    for seen in found:
        assert seen["metadata"]["labels"]["team"] == "research"
        assert seen["metadata"]["labels"]["app"] == "app"
    made = [event for event in space.plane.audit_events(space.name) if event["verb"] == "create"]
    created = [event for event in made if event["objectRef"].get("subresource") is None]
    assert len(created) == 3
    assert len(space.items("replicasets")) == 1


def test_a_namespace_that_is_marked_as_a_whole(new_namespace: NewNamespace) -> None:
    """Every pod in it belongs, is of the kind that the namespace says, and is placed by that."""
    labels = {"test": "whole", names.PLACE: names.PLACE_ALL, names.KIND: "notebook"}
    space = new_namespace(labels)
    space.create(pod("unmarked", labels={}))
    space.create(pod("marked"))
    # What the pod itself says goes before what the namespace says.
    space.create(pod("tagged", labels={names.KIND: "job"}))
    found = {seen["metadata"]["name"]: seen for seen in space.wait_for_pods(3)}
    for name in ("unmarked", "marked"):
        assert found[name]["spec"]["nodeName"].startswith("gpu-")
        assert set(stamp(found[name])["policies"]) == {"notebooks-on-gpu"}
    assert found["tagged"]["spec"]["nodeName"].startswith("on-demand-")
    assert stamp(found["tagged"])["policies"] == {}


def test_pods_without_a_mark_and_those_of_kube_system_never_reach_us(
    space: Space, running: Running
) -> None:
    """The API server itself does not send them, so they do not depend on us."""
    before = running.metric("fairlead_admission_requests_total")
    system = Space(space.plane, space.kubectl.within("kube-system"), "kube-system")
    try:
        for where, sent in ((space, pod("unmarked", labels={})), (system, pod("marked"))):
            created = where.create(sent)
            assert not is_stamped(created)
            assert "affinity" not in created["spec"]
            (annotations,) = where.audited(sent["metadata"]["name"])
            assert not [key for key in annotations if "fairlead" in key or "mutation" in key]
    finally:
        system.kubectl("delete", "pod", "marked")
    assert running.metric("fairlead_admission_requests_total") == before


def test_thirty_seconds_of_grace_are_the_api_servers_own(new_namespace: NewNamespace) -> None:
    """It fills them in before any webhook sees the pod; nobody can tell who wrote them."""
    space = new_namespace({"test": "ends"})
    path = f"/api/v1/namespaces/{space.name}/pods?dryRun=All"
    got = {}
    for own in (None, 30, 45, 0, 61):
        sent = pod("p", labels={names.RUN: "r"}, terminationGracePeriodSeconds=own)
        status, body = space.plane.api.call("POST", path, sent)
        got[own] = body["spec"]["terminationGracePeriodSeconds"] if status == 201 else status
    assert got == {None: 20, 30: 20, 45: 45, 0: 0, 61: 403}
