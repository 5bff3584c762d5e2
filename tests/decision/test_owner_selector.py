"""No label of a policy takes a pod from its owner, whatever policies, pods and selectors are."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import label_selectors
from tests.laws.strategies import KEYS, VALUES, Json, document, one, some
from tests.laws.world import CLUSTER, patched, policy_set
from tests.placement.test_owner_selector import label_expressions, replica_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.decision.arrival import Arrival
from webhook.decision.decision import Decision
from webhook.decision.engine import adds_labels, decide, receive_pod
from webhook.placement.owner_selector import OwnerSelector, selector_of

LABELS = st.fixed_dictionaries({}, optional={key: one(*VALUES[key]) for key in KEYS})
PARTS = ("defaults", "overrides", "requirements")
UNREAD = OwnerSelector("ReplicaSet web-1", unread="no answer in 0.5 s")


@st.composite
def labelling(draw: st.DrawFn) -> list[Json]:
    """Policies that set labels, some of them under Audit."""
    every = draw(some(st.tuples(one(*PARTS), LABELS, one("Enforce", "Audit"))))
    return [
        document(
            "PlacementPolicy", f"p{at}", {"enforcement": enforcement, part: {"labels": labels}}
        )
        for at, (part, labels, enforcement) in enumerate(every)
    ]


def pod(labels: Mapping[str, str]) -> Json:
    metadata = {"name": "p", "labels": {**labels, names.RUN: "r"}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "i"}]}}


def answer(came: Json, policies: list[Json], selector: OwnerSelector | None) -> Decision:
    return decide(Arrival(came, "ml", {}, selector=selector), policy_set(policies), CLUSTER)


@given(labelling(), LABELS, some(label_expressions()))
def test_an_admitted_pod_stays_in_the_selector_of_its_owner(
    policies: list[Json], own: dict[str, str], expressions: list[Json]
) -> None:
    """A pod that its owner counts is admitted as one that it counts, or rejected with a policy."""
    selector = {"matchExpressions": expressions}
    if not label_selectors.holds(selector, own):
        return
    came = pod(own)
    decision = answer(came, policies, selector_of(replica_set(expressions)))
    free = answer(came, policies, None)
    if decision.allowed:
        assert label_selectors.holds(selector, patched(came, decision)["metadata"]["labels"])
        assert decision.patch == free.patch
    else:
        assert decision.rejected_by
        out = free.allowed and not label_selectors.holds(
            selector, patched(came, free)["metadata"]["labels"]
        )
        assert out or not free.allowed


@given(labelling(), LABELS)
def test_without_the_selector_no_label_is_added(policies: list[Json], own: dict[str, str]) -> None:
    """A label that is required rejects the pod; each other one is left out, and recorded."""
    came = pod(own)
    decision, free = answer(came, policies, UNREAD), answer(came, policies, None)
    added = (
        free.allowed
        and free.placement is not None
        and free.placement.labels != came["metadata"]["labels"]
    )
    if decision.allowed:
        labels = patched(came, decision)["metadata"]["labels"]
        assert labels == came["metadata"]["labels"]
        stamped = json.loads(patched(came, decision)["metadata"]["annotations"][names.PLACEMENT])
        assert stamped.get("leftOut", {}) == dict(decision.left_out)
        assert bool(decision.left_out) == added
        assert len(decision.warnings) >= sum(map(len, decision.left_out.values()))
    else:
        assert decision.rejected_by


@given(labelling(), LABELS)
def test_the_selector_is_read_if_a_policy_sets_a_label_that_the_pod_lacks(
    policies: list[Json], own: dict[str, str]
) -> None:
    """Also one under Audit; and only then does the selector change an answer."""
    came = pod(own)
    compiled = policy_set(policies)
    received = receive_pod(Arrival(came, "ml", {}))
    assert received
    if not adds_labels(received, compiled):
        assert answer(came, policies, UNREAD) == answer(came, policies, None)


@pytest.mark.parametrize("part", PARTS)
def test_the_messages(part: str, wording: Wording) -> None:
    """They name policy, label, selector and cure; a warning is short."""
    policies = [document("PlacementPolicy", "team", {part: {"labels": {"team": "ml"}}})]
    expressions = [{"key": "team", "operator": "NotIn", "values": ["ml", "vision"]}]
    rejected = answer(pod({}), policies, selector_of(replica_set(expressions)))
    mentions(rejected.reason, "policy team", f"{part}.labels[team]", "'ml'", "ReplicaSet web-1")
    mentions(rejected.reason, "team NotIn [ml, vision]", "exclude")
    wording(rejected.reason)
    unread = answer(pod({}), policies, UNREAD)
    text = unread.reason if part == "requirements" else unread.warnings[0]
    assert unread.allowed == (part != "requirements")
    mentions(text, "policy team", "labels[team]", "ReplicaSet web-1", "not read", "0.5 s")
    wording(text)
    if unread.allowed:
        assert unread.left_out == {"team": ["labels[team]"]}
        assert unread.unfulfilled == {"team": ("labels[team]",)}
