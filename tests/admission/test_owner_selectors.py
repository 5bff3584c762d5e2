"""Pods of owners that count them by labels: no label of a policy takes a pod from its owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.admission.reviews import Answer, Webhook, policy_set, review
from tests.admission.reviews import pod as a_pod
from tests.policy_tests.writing import policy
from tests.wording import mentions
from webhook import names
from webhook.decision.notice import Notice, Owner
from webhook.errors import ClusterError
from webhook.placement.owner_selector import CountedPods
from webhook.placement.shapes import Requirement

Json = dict[str, Any]
TEAM = policy("team", "overrides: {labels: {team: ml}}")
OWNER: Json = {
    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d", "uid": "u", "controller": True
}  # fmt: skip
HASH = {"pod-template-hash": "7d"}


def pod(owner: Json | None = None, **labels: str) -> Json:
    """A pod of a run that the ReplicaSet of a Deployment owns."""
    made = a_pod(labels={names.RUN: "r", **HASH, **labels})
    made["metadata"]["ownerReferences"] = [OWNER if owner is None else owner]
    return made


def annotations_in(answer: Answer) -> dict[str, str]:
    """The annotations that the patch gives a pod without any."""
    found = {each["path"]: each["value"] for each in answer.patch}
    annotations: dict[str, str] = found["/metadata/annotations"]
    return annotations


class Owners:
    """Owners with these conditions, or that cannot be read; `read` are those asked for."""

    def __init__(self, *conditions: Requirement, error: str = "", first: int = 0) -> None:
        self.conditions_of_all = conditions
        self.first = first
        self.error = error
        self.read: list[tuple[str, Owner]] = []

    async def led(self, *_: object) -> bool:
        return False

    async def counted(self, namespace: str, owner: Owner) -> CountedPods:
        self.read.append((namespace, owner))
        if self.error:
            raise ClusterError(self.error)
        return CountedPods(self.conditions_of_all, self.first)


NO_TEAM: Requirement = {"key": "team", "operator": "DoesNotExist", "values": []}
LABEL = {"op": "add", "path": "/metadata/labels/team", "value": "ml"}


def test_a_pod_that_its_owner_would_lose_is_rejected() -> None:
    """With the policy, the label, the selector and the cure; its owner's author hears of it."""
    told: list[Notice] = []
    server = Webhook(policy_set(TEAM), objects=Owners(NO_TEAM), tell=told.append)
    response = server.post(review(pod())).response
    assert not response["allowed"]
    message = response["status"]["message"]
    mentions(message, "policy team", "labels[team]", "'ml'", "Deployment web", "team DoesNotExist")
    assert server.counted("policy_rejections", policy="team") == 1
    (notice,) = told
    assert notice.template == ("Deployment", "web")


def test_a_pod_that_its_owner_keeps_gets_the_label() -> None:
    """The owner is read as the pod names it."""
    owners = Owners({"key": "team", "operator": "NotIn", "values": ["vision"]})
    answer = Webhook(policy_set(TEAM), objects=owners).post(review(pod()))
    assert LABEL in answer.patch
    assert owners.read == [("ml-team", Owner("apps/v1", "ReplicaSet", "web-7d", "u"))]


@pytest.mark.parametrize(
    ("objects", "why"),
    [(Owners(error="no answer in 0.5 s"), "no answer"), (None, "no cluster is asked")],
)
def test_a_label_is_left_out_where_the_owner_cannot_be_read(
    objects: Owners | None, why: str
) -> None:
    """With a warning, a count, and in the stamp; the rest of the policy applies."""
    both = policy("team", "overrides: {labels: {team: ml}, annotations: {team: ml}}")
    server = Webhook(policy_set(both), objects=objects)
    answer = server.post(review(pod()))
    assert answer.response["allowed"]
    (warning,) = answer.response["warnings"]
    mentions(warning, "policy team", "labels[team]", "left out", "Deployment web", why)
    assert LABEL not in answer.patch
    (annotations,) = (
        each["value"] for each in answer.patch if each["path"] == "/metadata/annotations"
    )
    assert annotations["team"] == "ml"
    stamp = json.loads(annotations[names.PLACEMENT])
    assert stamp["leftOut"] == {"team": ["labels[team]"]}
    assert stamp["policies"] == {"team": ["annotations[team]"]}
    assert server.counted("labels_left_out", policy="team") == 1


def test_a_required_label_is_not_left_out() -> None:
    """No author escapes a requirement by keeping the webhook from reading."""
    server = Webhook(
        policy_set(policy("team", "requirements: {labels: {team: ml}}")),
        objects=Owners(error="too many objects are asked for at once"),
    )
    response = server.post(review(pod())).response
    assert not response["allowed"]
    mentions(response["status"]["message"], "policy team", "labels[team]", "too many")


@pytest.mark.parametrize(
    ("came", "why"),
    [
        (pod(team="vision"), "has the label"),
        (a_pod(), "has no owner"),
        (pod({**OWNER, "controller": False}), "has no controller"),
        (pod({**OWNER, "apiVersion": "batch/v1"}), "has an owner of an unknown kind"),
        (
            pod({**OWNER, "apiVersion": "v1", "kind": "ReplicationController"}),
            "only asks for labels",
        ),
    ],
)
def test_nothing_is_read_for_a_pod_that(came: Json, why: str) -> None:
    """And none is left out."""
    owners = Owners(NO_TEAM)
    answer = Webhook(policy_set(TEAM), objects=owners).post(review(came))
    assert answer.response["allowed"], why
    assert not owners.read
    assert (LABEL in answer.patch) == ("team" not in came["metadata"]["labels"])


def test_nothing_is_read_without_a_policy_that_sets_labels() -> None:
    """Or where none of those matches."""
    elsewhere = policy("team", "match: {kinds: [notebook]}, overrides: {labels: {team: ml}}")
    for text in (policy("pool", "defaults: {nodeSelector: {pool: a}}"), elsewhere):
        owners = Owners(NO_TEAM)
        assert Webhook(policy_set(text), objects=owners).post(review(pod())).response["allowed"]
        assert not owners.read


def test_a_second_call_reads_nothing_and_a_dry_run_is_the_same() -> None:
    """The label is there by then."""
    owners = Owners()
    server = Webhook(policy_set(TEAM), objects=owners)
    first = server.post(review(pod()))
    assert server.post(review(pod(), dryRun=True)).patch == first.patch
    assert len(owners.read) == 2
    again = pod(team="ml")
    again["metadata"]["annotations"] = annotations_in(first)
    assert server.post(review(again)).patch == []
    assert len(owners.read) == 2


def test_a_policy_under_audit_is_recorded_as_one_that_rejects() -> None:
    """So a rollout shows it before it does harm."""
    audited = policy("team", "enforcement: Audit, overrides: {labels: {team: ml}}")
    server = Webhook(policy_set(audited), objects=Owners(NO_TEAM))
    answer = server.post(review(pod()))
    assert answer.response["allowed"]
    found = json.loads(answer.response["auditAnnotations"]["audit"])
    mentions(found["rejections"][0], "policy team", "Deployment web")


SPOT = (
    "apiVersion: fairlead.dev/v1alpha1\nkind: CapacityClass\nmetadata: {name: spot}\n"
    "spec: {nodes: [{labels: {lifecycle: spot}}]}\n---\n"
)
SPLIT = SPOT + policy(
    "few", "overrides: {split: [{class: spot, count: 2}, {class: spot, mode: Prevent}]}"
)


def of_set(ordinal: int, **labels: str) -> Json:
    """A pod of a run that a StatefulSet owns."""
    owner = {**OWNER, "kind": "StatefulSet", "name": "web"}
    return pod(owner, **{names.POD_INDEX: str(ordinal)}, **labels)


def is_on_spot(answer: Answer) -> bool:
    return any("'In'" in str(each) for each in answer.patch)


@pytest.mark.parametrize(("ordinal", "on_spot"), [(5, True), (6, True), (7, False), (4, False)])
def test_a_stateful_set_is_read_for_its_first_ordinal(ordinal: int, on_spot: bool) -> None:
    """Only where a split counts by it."""
    owners = Owners(first=5)
    answer = Webhook(policy_set(SPLIT), objects=owners).post(review(of_set(ordinal)))
    assert is_on_spot(answer) == on_spot
    assert [owner.kind for _, owner in owners.read] == ["StatefulSet"]
    with_index = of_set(ordinal, **{names.REPLICA_INDEX: "0"})
    assert is_on_spot(Webhook(policy_set(SPLIT), objects=owners).post(review(with_index)))
    assert len(owners.read) == 1


def test_a_stateful_set_that_cannot_be_read_gives_the_last_share() -> None:
    """And its author hears why."""
    server = Webhook(policy_set(SPLIT), objects=Owners(error="no answer in 0.5 s"))
    answer = server.post(review(of_set(0)))
    assert not is_on_spot(answer)
    (warning,) = answer.response["warnings"]
    mentions(warning, "policy few", "last share", "StatefulSet web", "is not read")
