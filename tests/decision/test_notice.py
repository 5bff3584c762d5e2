"""What the workload that owns a pod is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.admission.reviews import POOL, SPOT, Json, Webhook, pod, policy_set, review
from tests.wording import Wording, mentions
from webhook.decision.decision import Decision
from webhook.decision.notice import NO_NODE, REJECTED, Notice, Owner, of_no_node, owner_of

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": True}
OWNER = Owner("batch/v1", "Job", "train", "u1")
ELSEWHERE = {"nodeSelector": {"pool": "other"}}


def owned(*owners: object, **spec: Any) -> Json:
    made = pod(**spec)
    made["metadata"]["ownerReferences"] = list(owners)
    return made


def told(made: Json, policies: str = POOL, **request: object) -> list[Notice]:
    notices: list[Notice] = []
    Webhook(policy_set(policies), tell=notices.append).post(review(made, **request))
    return notices


def test_the_owner_of_a_rejected_pod_gets_an_event(wording: Wording) -> None:
    """By which policy, and what to change: its controller's own Event does not say that."""
    (notice,) = told(owned(JOB, **ELSEWHERE))
    assert notice[:3] == ("ml-team", OWNER, REJECTED)
    reason, _, cure = notice.message(notice.owner).partition(". ")
    mentions(reason, "policy pool-required", "nodeSelector[pool]", "'experiments'", "'other'")
    mentions(cure, "pod template", "Job train", "policy pool-required", "PlacementException")
    wording(notice.message(notice.owner))


URGENT = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: urgent}
spec: {defaults: {priorityClassName: hgih}}
"""


def test_a_class_that_a_policy_sets_and_the_cluster_lacks_is_named(wording: Wording) -> None:
    """The API server refuses the pod afterwards, and names the class alone."""
    notices: list[Notice] = []
    there: dict[str, dict[str, Json]] = {"PriorityClass": {"high": {}}}
    webhook = Webhook(policy_set(URGENT), tell=notices.append, classes=lambda: there)
    answer = webhook.post(review(owned(JOB)))
    (notice,) = notices
    assert notice.reason == REJECTED
    message = notice.message(notice.owner)
    mentions(message, "policy urgent", "no PriorityClass 'hgih'", "Job train", "ask your admin")
    assert any("hgih" in each for each in answer.response["warnings"])
    wording(message)
    # One that the pod names itself is its author's, and a kind that is not known is not missed.
    webhook.post(review(owned(JOB, priorityClassName="own")))
    there.clear()
    webhook.post(review(owned(JOB)))
    there["PriorityClass"] = {"hgih": {}}
    webhook.post(review(owned(JOB)))
    assert len(notices) == 1


def test_an_admitted_pod_causes_no_event() -> None:
    """Nor one that is rejected only under Audit."""
    assert told(owned(JOB)) == []
    audited = POOL.replace("spec: {", "spec: {enforcement: Audit, ")
    assert told(owned(JOB, **ELSEWHERE), audited) == []
    assert told(owned(JOB), SPOT) == []


def test_a_pod_without_a_controller_causes_no_event() -> None:
    """Whoever made it by hand has the refusal itself."""
    assert told(pod(**ELSEWHERE)) == []
    assert told(owned({**JOB, "controller": False}, **ELSEWHERE)) == []


def test_a_dry_run_writes_no_event() -> None:
    """It may have no effect: the entries of the configuration promise it."""
    assert told(owned(JOB, **ELSEWHERE), dryRun=True) == []


def test_a_pod_that_the_api_server_would_not_send_causes_no_event() -> None:
    """Whoever reaches the port can make such a pod up: for kube-system, say."""
    notices: list[Notice] = []
    asked: list[object] = []

    def reaches(pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        asked.append((pod, namespace))
        return False

    webhook = Webhook(policy_set(POOL), tell=notices.append, reaches=reaches)
    answer = webhook.post(review(owned(JOB, **ELSEWHERE)))
    assert not answer.response["allowed"]
    assert notices == []
    assert asked == [({"fairlead.dev/run": "r"}, {})]


def test_a_pod_that_asks_for_what_there_is_not_tells_what_to_change(wording: Wording) -> None:
    """No policy is to blame then."""
    made = owned(JOB)
    made["metadata"]["annotations"] = {"fairlead.dev/capacity": "nowhere=Constrain"}
    (notice,) = told(made)
    mentions(notice.message(notice.owner), "nowhere", "pod template", "Job train")
    assert "policy" not in notice.message(notice.owner)
    assert "admin" not in notice.message(notice.owner)
    wording(notice.message(notice.owner))


@pytest.mark.parametrize(
    "owner",
    [
        *({}, {"controller": True}, {**JOB, "uid": ""}, {**JOB, "name": 1}, "Job", None),
        *({**JOB, part: "x" * 10**6} for part in ("apiVersion", "kind", "name", "uid")),
        {**JOB, "name": "train\x1b[2J"},
    ],
)
def test_an_invalid_owner_reference_is_ignored(owner: object) -> None:
    """Pods of any shape come here, and an Event would carry what their authors made up."""
    assert owner_of(owned(owner)) is None


def test_owners_of_any_shape_are_read() -> None:
    assert owner_of({"metadata": {"ownerReferences": "x"}}) is None
    assert owner_of(owned({**JOB, "controller": False, "name": "other"}, JOB)) == OWNER


def test_a_long_reason_leaves_room_for_the_cure() -> None:
    """What the pod says may be long, and a message has an end."""
    (notice,) = told(owned(JOB, nodeSelector={"pool": "x" * 2000}))
    assert len(notice.message(notice.owner)) <= 1024
    mentions(notice.message(notice.owner), "pod template", "Job train", "PlacementException")


def test_a_pod_without_a_node_has_a_reason_of_its_own(wording: Wording) -> None:
    """It is admitted, and waits: no controller says anything of it."""
    why = "fairlead: 0 of 37 nodes: pool=ml matches 12"
    notice = of_no_node(owned(JOB), "ml", Decision("placed"), why)
    assert notice is not None
    assert notice[:3] == ("ml", OWNER, NO_NODE)
    assert notice.message(notice.owner).startswith("0 of 37 nodes: pool=ml matches 12. ")
    mentions(notice.message(notice.owner), "pod template", "Job train", "admin")
    wording(notice.message(notice.owner))
    assert of_no_node(pod(), "ml", Decision("placed"), "0 of 37 nodes") is None


def test_the_policies_that_leave_no_node_are_named_in_the_cure(wording: Wording) -> None:
    """Those that the reason names, and no others that took part."""
    decision = Decision("placed", policies=("gpus", "notebooks", "spot"))
    why = "0 of 9 nodes: class gpu (policy gpus) matches 3 and pool=n (policy notebooks) 4, but"
    notice = of_no_node(owned(JOB), "ml", decision, why)
    assert notice is not None
    cure = notice.message(notice.owner).partition(". ")[2]
    mentions(cure, "policies gpus, notebooks")
    assert "spot" not in cure
    wording(notice.message(notice.owner))


@pytest.mark.parametrize(
    ("digest", "told"),
    [
        ("5d4f", "Deployment serve"),
        ("77", "ReplicaSet serve-5d4f"),
        (None, "ReplicaSet serve-5d4f"),
    ],
)
def test_of_a_deployments_pod_the_deployment_is_named(digest: str | None, told: str) -> None:
    """What is changed in a ReplicaSet is undone; one that nobody owns is named itself."""
    made = owned({**JOB, "kind": "ReplicaSet", "name": "serve-5d4f"})
    if digest:
        made["metadata"]["labels"]["pod-template-hash"] = digest
    notice = of_no_node(made, "ml", Decision("placed"), "0 of 9 nodes")
    assert notice is not None
    mentions(notice.message(notice.owner), f"pod template of {told},")
    assert notice.owner.kind == "ReplicaSet"
