"""Beside the real controllers: no label of a policy makes them create pods without end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.manifests import Json, pod, policy_text, template, workload
from tests.cluster.spaces import LOOK, NewNamespace, Running, Space, stamp
from tests.eventually import eventually
from tests.objects import an_object, controlled_by
from tests.wording import mentions
from webhook import names
from webhook.evaluation.selecting_objects import KINDS
from webhook.metric_names import LABELS_LEFT_OUT

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = policy_text(
    "of-ml",
    "match: {namespaceSelector: {matchLabels: {test: owners}}}",
    "requirements: {labels: {team: ml}}",
) + policy_text(
    "stage",
    "match: {namespaceSelector: {matchLabels: {test: left-out}}}",
    "defaults: {labels: {team: ml}, annotations: {team: ml}}",
)
OPTIONS = ("--events",)
NO_TEAM = {
    "matchLabels": {"app": "app"},
    "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
}
NOT_ML = {
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["app"]},
        {"key": "team", "operator": "NotIn", "values": ["ml"]},
    ]
}
ANOTHER = {
    "matchLabels": {"app": "app"},
    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["vision"]}],
}
JOB_TEMPLATE = template(restartPolicy="Never")
LOSING = {
    "deployment": workload("Deployment", "w", selector=NO_TEAM),
    "replica-set": workload("ReplicaSet", "w", selector=NOT_ML),
    "stateful-set": workload("StatefulSet", "w", selector=NOT_ML, serviceName="w"),
    "daemon-set": workload("DaemonSet", "w", selector=NO_TEAM),
    "job": an_object(
        "batch/v1",
        "Job",
        "w",
        {"manualSelector": True, "selector": NO_TEAM, "template": JOB_TEMPLATE},
    ),
    "job-with-a-generated-label": an_object(
        "batch/v1",
        "Job",
        "w",
        {"selector": {"matchExpressions": NO_TEAM["matchExpressions"]}, "template": JOB_TEMPLATE},
    ),
}


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    return new_namespace({"test": "owners"})


def attempts(space: Space) -> list[Json]:
    """The creations of pods in the audit log, admitted or not."""
    events = space.plane.audit_events(space.name)
    return [each for each in events if each["verb"] == "create"]


@pytest.mark.parametrize("kind", LOSING)
def test_a_label_that_breaks_the_owners_selector_rejects_its_pods(space: Space, kind: str) -> None:
    """Its controller waits longer and longer, and the author of the workload gets an Event."""
    made = LOSING[kind]
    space.create(made)
    found: list[Json] = []

    def event() -> bool:
        query = "--field-selector=involvedObject.name=w,source=fairlead-webhook"
        found[:] = space.kubectl.json("get", "events", query)["items"]
        return bool(found)

    eventually("the author gets an Event", event, explain=lambda: attempts(space), period=LOOK)
    mentions(found[0]["message"], "policy of-ml", "labels[team]", f"{made['kind']} w", "team ")
    before = len(attempts(space))
    # Time for hundreds of pods: without the check it was 37 each second.
    time.sleep(2)
    assert space.pods() == []
    assert len(attempts(space)) < before + 40


def test_explain_says_so_of_the_live_object(space: Space, running: Running) -> None:
    """Of the Deployment, and of its ReplicaSet."""
    space.create(LOSING["deployment"])
    (owner,) = eventually("it has a ReplicaSet", lambda: space.items("replicasets"))
    for title in ("deployment/w", f"replicaset/{owner['metadata']['name']}"):
        said = space.ask("explain", title, "--policies", running.policies)
        assert said.exit_code == 1, said.output
        mentions(" ".join(said.output.split()), "policy of-ml", "Deployment w", "team DoesNotExist")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_label_that_the_selector_allows_is_set(space: Space, kind: str) -> None:
    """The controller keeps each pod, and creates no other."""
    space.create(workload(kind, "w", selector=ANOTHER))
    space.kubectl("rollout", "status", f"{kind.lower()}/w", "--timeout=120s")
    found = {each["metadata"]["uid"] for each in space.pods()}
    assert found
    for each in space.pods():
        assert each["metadata"]["labels"]["team"] == "ml"
    time.sleep(1)
    assert {each["metadata"]["uid"] for each in space.pods()} == found


@contextmanager
def without_right(space: Space, resource: str) -> Iterator[None]:
    """The webhook may not get objects of the resource meanwhile."""
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{names.WEBHOOK}"
    whole = space.plane.api.get(path)["rules"]
    kept = [
        {**rule, "resources": [each for each in rule["resources"] if each != resource]}
        for rule in whole
    ]
    space.plane.api.patch(path, {"rules": kept})
    try:
        yield
    finally:
        space.plane.api.patch(path, {"rules": whole})


def test_a_label_is_left_out_where_the_webhook_may_not_read_the_owner(
    new_namespace: NewNamespace, running: Running
) -> None:
    """The rest of the policy applies; the stamp, a warning and a count say it."""
    space = new_namespace({"test": "left-out"})
    count = running.metric(LABELS_LEFT_OUT, policy="stage")
    with without_right(space, "replicasets"):

        def made() -> bool:
            # A new owner each time: a selector that was read once is remembered.
            name = f"w{len(space.items('replicasets'))}"
            owner = space.create(workload("ReplicaSet", name, replicas=0))
            owned = pod("p")
            owned["metadata"]["ownerReferences"] = controlled_by(owner)
            said = space.kubectl.run(
                "create", "-f", "-", "--dry-run=server", stdin=json.dumps(owned)
            ).stderr
            return "labels[team]: left out" in said and "may not get replicasets" in said

        eventually("the right is gone", made)
        space.create(workload("Deployment", "d", selector=NO_TEAM))
        (seen,) = space.wait_for_pods(1)
    assert "team" not in seen["metadata"]["labels"]
    assert seen["metadata"]["annotations"]["team"] == "ml"
    assert stamp(seen)["leftOut"] == {"stage": ["labels[team]"]}
    assert running.metric(LABELS_LEFT_OUT, policy="stage") > count


def test_two_disruption_budgets_by_a_label_stop_each_eviction(
    new_namespace: NewNamespace, running: Running
) -> None:
    """Explain says so, and names the Service and the policy of the network that change."""
    space = new_namespace({"test": "left-out"})
    for name, labels in (("mine", {"app": "lone"}), ("team", {"team": "ml"})):
        budget = {"minAvailable": 0, "selector": {"matchLabels": labels}}
        space.create(an_object("policy/v1", "PodDisruptionBudget", name, budget))
    ports = {"selector": {"team": "ml"}, "ports": [{"port": 80}]}
    space.create(an_object("v1", "Service", "web", ports))
    without = {"podSelector": {"matchExpressions": NO_TEAM["matchExpressions"]}}
    space.create(an_object("networking.k8s.io/v1", "NetworkPolicy", "closed", without))
    space.create(pod("kept", labels={names.RUN: "r", "app": "lone"}))
    space.wait_for_pods(1)
    said = space.ask("explain", "pod/kept", "--policies", running.policies)
    mentions(" ".join(said.output.split()), "Service web", "NetworkPolicy closed no longer")
    mentions(said.output, "policy stage", "PodDisruptionBudgets (mine, team)")
    eviction = an_object("policy/v1", "Eviction", "kept")

    def refused() -> bool:
        # A pod that is not ready may be evicted whatever budgets say.
        path = f"{space.path('pods', 'kept')}/eviction?dryRun=All"
        status, answer = space.plane.api.call("POST", path, eviction)
        return status == 500 and "more than one PodDisruptionBudget" in str(answer)

    eventually("no eviction succeeds", refused)


@pytest.mark.parametrize("kind", [each for each, row in KINDS.items() if row.adopts])
def test_a_pod_that_a_label_gives_to_a_stranger_is_deleted(
    new_namespace: NewNamespace, running: Running, tmp_path: Path, kind: str
) -> None:
    """As the commands say before: it is adopted, and is one too many."""
    space = new_namespace({"test": "left-out"})
    row, spec = KINDS[kind], pod("p")["spec"]
    ending = {"restartPolicy": "Never"} if kind == "Job" else {}
    own = {"metadata": {"labels": {"team": "ml"}}, "spec": {**spec, **ending}}
    ml: Json = {"team": "ml"} if row.plain else {"matchLabels": {"team": "ml"}}
    more = {"manualSelector": True} if kind == "Job" else {}
    other = an_object(row.api_version, kind, "other", {"selector": ml, "template": own, **more})
    space.create(other)
    eventually("it has pods", space.pods)
    lone, file = pod("lone"), tmp_path / "both.json"
    labelled = an_object("v1", "Namespace", space.name)
    labelled["metadata"]["labels"] = {"test": "left-out"}
    items = [other, lone, labelled]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    said = space.ask("preview", "-f", file, "-n", space.name, "--policies", running.policies)
    mentions(said.stderr, f"policy stage: labels: {kind} other adopts the pod, and deletes it")
    space.create(lone)

    def taken() -> bool:
        left = space.find("pods", "lone")
        # Simulated pods of a Job end within seconds, and the Job with them.
        owners = left["metadata"].get("ownerReferences", []) if left and kind == "Job" else []
        return left is None or [each["name"] for each in owners] == ["other"]

    eventually("it is adopted, and gone", taken, explain=space.pods)
