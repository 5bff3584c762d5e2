"""The engine's answers that the laws do not speak of: who is left alone, audit, the stamp."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.decision.arrival import Arrival, Cluster, history_of
from webhook.decision.audit import annotations_of
from webhook.decision.decision import Decision
from webhook.decision.engine import decide
from webhook.identity import misread
from webhook.placement.pod import MAX_ENTRIES
from webhook.placement.stamp_text import read_turns

Json = dict[str, Any]
POOL = document(
    "PlacementPolicy",
    "pool",
    {"defaults": {"nodeSelector": {"pool": "a"}, "labels": {"team": "x"}}},
)


def pod(metadata: Json | None = None, **spec: Any) -> Json:
    merged = {"labels": {names.RUN: "r"}, **(metadata or {})}
    return {"metadata": merged, "spec": {"containers": [], **spec}}


def answer(
    what: Json,
    *policies: Json,
    user: str = "",
    groups: Sequence[str] = (),
    namespace: Json | None = None,
) -> Decision:
    """The decision under the policies; no node is known."""
    compiled = policy_set(policies or [POOL])
    arrival = Arrival(what, "ml", namespace or {}, user, groups=groups)
    return decide(arrival, compiled, Cluster())


def stamp(decision: Decision) -> Json:
    assert decision.placement is not None
    result: Json = json.loads(decision.placement.annotations[names.PLACEMENT])
    return result


OWNED: Json = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}]
}
MIRROR: Json = {"annotations": {names.MIRROR_POD: "x"}}


@pytest.mark.parametrize(
    ("metadata", "user", "groups", "result"),
    [
        (OWNED, names.DAEMON_SET_CONTROLLER, (), "left-alone"),
        (OWNED, "", (), "left-alone"),
        (OWNED, "somebody", (), "placed"),
        (
            {"ownerReferences": [{**OWNED["ownerReferences"][0], "controller": False}]},
            names.DAEMON_SET_CONTROLLER,
            (),
            "placed",
        ),
        (MIRROR, "system:node:a", (names.NODE_GROUP,), "left-alone"),
        (MIRROR, "system:node:a", ("system:authenticated",), "placed"),
        (MIRROR, "somebody", (names.NODE_GROUP,), "placed"),
        (MIRROR, "", (), "left-alone"),
        (MIRROR, "somebody", (), "placed"),
        ({"ownerReferences": "nonsense"}, "", (), "placed"),
    ],
)
def test_who_keeps_their_placement(
    metadata: Json, user: str, groups: tuple[str, ...], result: str
) -> None:
    """The request's user tells, for what a pod says can be forged; offline it is believed."""
    decision = answer(pod(metadata), user=user, groups=groups)
    assert decision.result == result
    if result == "left-alone":
        assert [o["path"].split("/")[1] for o in decision.patch] == ["metadata"]
        assert stamp(decision)["leftAlone"] == decision.reason
        assert annotations_of(decision, "h")["reason"] == decision.reason


def test_the_stamp_credits_policies_with_what_the_pod_holds() -> None:
    """Whoever came first: a policy that the pod agreed with by itself is credited too."""
    first = answer(pod())
    assert stamp(first)["policies"] == {"pool": ["labels[team]", "nodeSelector[pool]"]}
    own = answer(pod(nodeSelector={"pool": "a"}))
    assert stamp(own)["policies"] == stamp(first)["policies"]
    other = answer(pod(nodeSelector={"pool": "b"}))
    assert stamp(other)["policies"] == {"pool": ["labels[team]"]}


def test_a_forged_stamp_is_rewritten_and_never_read() -> None:
    forged = pod({"annotations": {names.PLACEMENT: '{"leftAlone":"trust me"}'}})
    assert stamp(answer(forged)) == stamp(answer(pod()))
    assert answer(forged).result == "placed"


AUDITED = document(
    "PlacementPolicy",
    "trial",
    {"enforcement": "Audit", "overrides": {"nodeSelector": {"pool": "b"}}},
)


def test_a_policy_under_audit_changes_nothing_and_is_recorded() -> None:
    """Neither the pod nor its stamp; the audit annotation says what it would have done."""
    decision = answer(pod(), POOL, AUDITED)
    assert decision.patch[-1]["value"] == {"pool": "a"}
    assert "trial" not in json.dumps(stamp(decision))
    assert decision.audited is not None
    assert decision.audited.differs
    report = json.loads(annotations_of(decision, "h")["audit"])
    assert report["policies"] == ["trial"]
    assert {"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "b"}} in report["patch"]


def test_warnings_are_short_enough_for_a_terminal() -> None:
    """Each under 120 characters, however long the names are."""
    names_of = [f"a-very-long-policy-name-{'x' * 60}-{at}" for at in range(2)]
    policies = [
        document("PlacementPolicy", name, {"overrides": {"nodeSelector": {key: "a"}}})
        for name, key in zip(names_of, ("pool", "zone"), strict=True)
    ]
    policies.append(
        document(
            "PlacementPolicy",
            "z" * 100,
            {"overrides": {"capacity": [{"class": "pool-b", "mode": "Constrain"}]}},
        )
    )
    decision = answer(pod(), *policies)
    assert decision.warnings
    assert all(len(w) < 120 for w in decision.warnings)


def test_a_message_quotes_a_pods_value_shortened() -> None:
    """Mutation runs before validation: a value may be a megabyte long."""
    strict = document("PlacementPolicy", "p", {"requirements": {"nodeSelector": {"pool": "a"}}})
    decision = answer(pod(nodeSelector={"pool": "x" * 1_000_000}), strict)
    assert not decision.allowed
    mentions(decision.reason, "requirements.nodeSelector[pool]", "'a'", "'xxx")
    assert len(decision.reason) < 300
    asked = answer(pod({"annotations": {names.CAPACITY: ",".join(["nothing=Allow"] * 10_000)}}))
    assert not asked.allowed
    assert len(asked.reason) < 2000


def tolerations(count: int) -> list[Json]:
    return [{"key": f"k{at}", "operator": "Exists"} for at in range(count)]


def test_a_pod_beyond_the_budget_is_rejected_whatever_the_policies_are(wording: Wording) -> None:
    """Never let through unplaced; one that is left alone costs nothing, and stays so."""
    large = pod(tolerations=tolerations(MAX_ENTRIES + 1))
    decision = answer(large)
    assert (decision.result, decision.patch) == ("rejected", ())
    mentions(decision.reason, "spec.tolerations", str(MAX_ENTRIES + 1), f"at most {MAX_ENTRIES}")
    wording(decision.reason)
    owner = {"kind": "DaemonSet", "controller": True, "apiVersion": "apps/v1", "name": "d"}
    assert answer(pod({"ownerReferences": [owner]}, **large["spec"])).result == "left-alone"


def test_what_is_placed_is_within_the_budget_when_it_comes_back(wording: Wording) -> None:
    """A pod that policies would take beyond it is rejected the first time, and not the second."""
    more = document("PlacementPolicy", "more", {"overrides": {"tolerations": tolerations(2)}})
    others = [{**each, "key": f"own-{each['key']}"} for each in tolerations(MAX_ENTRIES)]
    decision = answer(pod(tolerations=others[: MAX_ENTRIES - 1]), more)
    assert decision.result == "rejected"
    mentions(decision.reason, "more", "spec.tolerations", str(MAX_ENTRIES + 1))
    wording(decision.reason)
    fits = answer(pod(tolerations=others[: MAX_ENTRIES - 2]), more)
    assert fits.result == "placed"
    assert fits.placement is not None
    again = answer(pod(tolerations=fits.placement.tolerations), more)
    assert again.result == "unchanged"


def test_a_history_of_somebody_else_is_removed_and_the_author_is_told(wording: Wording) -> None:
    """And nothing else is different; the controller's stays, without a word."""
    text = '{"asOf":"2026-06-01T11:00:00Z","events":[]}'
    forged = pod({"annotations": {names.HISTORY: text}})
    decision = answer(forged)
    assert decision.placement is not None
    assert names.HISTORY not in decision.placement.annotations
    assert decision.placement == answer(pod({"annotations": {}})).placement
    (told,) = decision.warnings
    mentions(told, names.HISTORY, "removed")
    wording(told)
    trusted = Arrival(forged, "ml", {}, "controller", history=history_of(forged))
    kept = decide(trusted, policy_set([POOL]), Cluster())
    assert kept.placement is not None
    assert kept.placement.annotations[names.HISTORY] == text
    assert not kept.warnings
    assert not misread({}, {names.HISTORY: text})


def test_the_controllers_dry_run_hears_where_replicas_may_be_placed_otherwise() -> None:
    """By a list of indexes, or a split of so many replicas; no other pod carries it."""
    listed = document(
        "PlacementPolicy",
        "some",
        {"match": {"replicaIndexes": [3]}, "defaults": {"labels": {"a": "b"}}},
    )
    replica = {names.RUN: "r", names.REPLICA_INDEX: "0", names.REPLICAS: "8"}
    for sampled, turns in ((True, (3, 4)), (False, ())):
        arrival = Arrival(pod({"labels": replica}), "ml", {}, "controller", sampled=sampled)
        decision = decide(arrival, policy_set([listed]), Cluster())
        assert decision.placement is not None
        assert read_turns({"annotations": decision.placement.annotations}) == turns
