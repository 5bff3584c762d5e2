"""A status is written when it differs, and what is new of an object itself goes first."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.judgement.reporting.objects import (
    ON_SPOT,
    by_place,
    capacity_class,
    exception,
    judged_objects,
    policy,
)
from tests.wording import Wording, mentions
from webhook.crd.conditions import ConditionUpdate
from webhook.interception import MUTATING
from webhook.judgement.entry_states import EntryState
from webhook.judgement.reporting.conditions import (
    SATISFIABLE,
    Acceptance,
    judge_objects,
    remembered,
)
from webhook.judgement.reporting.decision_counts import Count, Ledger, Report, counted, met
from webhook.judgement.reporting.in_force import SentPods
from webhook.judgement.reporting.statuses import SERVED, Due, Knowledge, due, summary
from webhook.policy.status_model import ObservedObject, PolicyStatus, Served

NOW, LATER = "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"
FOUND = ConditionUpdate(SATISFIABLE, "True", "NodesFound")
MISSING = ConditionUpdate(SATISFIABLE, "False", "NoNode", "none of the 3 nodes")

SENT = SentPods([EntryState("pods-0", MUTATING, stored={})])
LOST = SentPods([EntryState("pods-0", MUTATING, "Absent", "gone")])


def known(
    *objects: ObservedObject,
    said: ConditionUpdate = FOUND,
    served: str | None = "h",
    pods: int = 0,
    unheard: tuple[str, ...] = (),
) -> Knowledge:
    """All that is known of good objects; `pods` is what the one replica has counted of each."""
    ledger = counted(met(Ledger(), objects, NOW), {"a"}, {"a": Report("1", "h", {})})
    counts = {each.name: Count(pods, 0, LATER) for each in objects}
    if pods:
        ledger = counted(ledger, {"a"}, {"a": Report("1", "h", counts)})
    acceptance = judge_objects(judged_objects, by_place(*objects), Acceptance())
    return Knowledge(
        acceptance,
        {each.place: (each.version, said) for each in objects},
        ledger,
        None if served is None else (Served(replica="a", hash=served),),
        unheard=unheard,
    )


def written(
    seen: ObservedObject, knowledge: Knowledge, now: str = NOW
) -> tuple[ObservedObject, Due | None]:
    """The object with the status that is due, and that."""
    found = list(due([seen], knowledge, now))
    return (seen._replace(status=found[0].status), found[0]) if found else (seen, None)


def test_a_new_object_gets_its_whole_status_at_once() -> None:
    """Conditions, generation, counts and hashes."""
    seen, first = written(policy("p", generation=4), known(policy("p", generation=4)))
    assert first is not None
    assert first.urgency == "now"
    status = seen.status
    assert isinstance(status, PolicyStatus)
    assert [(each.type, each.status) for each in status.conditions] == [
        ("Accepted", "True"),
        ("Satisfiable", "True"),
        ("Served", "False"),
    ]
    assert {each.observed_generation for each in status.conditions} == {4}
    assert (status.observed_generation, status.since, status.last_match) == (4, NOW, None)
    assert status.served_hashes == (Served(replica="a", hash="h"),)


def test_a_class_gets_no_counts() -> None:
    """Only pods have them."""
    objects = capacity_class("spot"), policy("p", ON_SPOT)
    (found,) = (each for each in due(objects, known(*objects), NOW) if each.observed.name == "spot")
    assert "pods_decided" not in type(found.status).model_fields


@pytest.mark.parametrize(
    ("resource", "spec", "said"),
    [
        ("placementpolicies", {"rollout": {"namespaces": ["team-a", "lab-*"]}}, "team-a, lab-*"),
        ("placementpolicies", {"enforcement": "Audit"}, ""),
        ("placementpolicies", {"rollout": {"namespaces": 5}}, ""),
        ("placementexceptions", {"policies": ["spot", "gpus"]}, "spot, gpus"),
        ("placementexceptions", {}, ""),
        (
            "capacityclasses",
            {
                "nodes": [
                    {"labels": {"pool": "spot", "arch": "arm64"}},
                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
                    {"matchExpressions": [{"key": "d", "operator": "Exists"}]},
                ]
            },
            "pool=spot, arch=arm64 or a In [b, c] or d Exists",
        ),
        ("capacityclasses", {"complementOf": "spot"}, ""),
        ("capacityclasses", {"nodes": [5]}, ""),
        ("capacityclasses", {"nodes": [{"labels": {"k": "v" * 500}}]}, f"k={'v' * 117}…"),
    ],
)
def test_a_list_of_objects_shows_no_json(resource: str, spec: object, said: str) -> None:
    """And whatever somebody has written into a spec breaks nothing."""
    assert summary(resource, orjson.dumps({"spec": spec})) == said
    assert summary(resource, b"[]") == summary(resource, b"") == ""


def test_an_exception_that_has_ended_says_so() -> None:
    """With the time, and from when on."""
    knowledge = known(exception("e", LATER))
    knowledge = knowledge._replace(satisfied={})
    seen, _ = written(exception("e", LATER), knowledge)
    _, in_force, _ = seen.status.conditions
    assert (in_force.type, in_force.status, in_force.message) == (
        "InForce",
        "True",
        f"until {LATER}",
    )
    seen, next_ = written(seen, knowledge, LATER)
    assert next_ is not None
    assert next_.urgency == "now"
    _, in_force, _ = seen.status.conditions
    assert (in_force.status, in_force.reason) == ("False", "Ended")
    assert in_force.last_transition_time == LATER


def test_a_policy_is_in_force_while_pods_are_sent_to_the_webhook() -> None:
    """At once, both ways. A version that is not accepted is not in force, whatever is sent."""
    first = policy("p")

    def in_force(seen: ObservedObject) -> list[tuple[str, str, str]]:
        found = [each for each in seen.status.conditions if each.type == "InForce"]
        return [(each.status, each.reason, each.message) for each in found]

    seen, _ = written(first, known(first))
    assert in_force(seen) == []
    seen, _ = written(first, known(first)._replace(sent=SENT))
    assert in_force(seen) == [("True", "Intercepted", "")]
    seen, next_ = written(seen, known(first)._replace(sent=LOST))
    assert next_ is not None
    assert next_.urgency == "now"
    assert in_force(seen) == [("False", "NotIntercepted", "pods are not placed: pods-0: gone")]
    refused = policy("p", ON_SPOT)
    seen, _ = written(refused, known(refused)._replace(sent=SENT))
    assert in_force(seen) == [("False", "NotAccepted", "")]


def test_an_exception_is_not_in_force_while_no_pods_are_sent() -> None:
    """Until it has ended."""
    first = exception("e", LATER)
    knowledge = known(first)._replace(satisfied={}, sent=LOST)
    for now, reason in ((NOW, "NotIntercepted"), (LATER, "Ended")):
        seen, _ = written(first, knowledge, now)
        (found,) = (each for each in seen.status.conditions if each.type == "InForce")
        assert (found.status, found.reason) == ("False", reason)


@pytest.mark.parametrize("until", [NOW, "2026-03-01T14:00:00+02:00"])
def test_an_end_is_reported_although_the_set_is_rejected(until: str, wording: Wording) -> None:
    """Whoever leads since then knows no good set; the webhook goes by one all the same."""
    first = exception("e", until)
    seen, _ = written(first, known(first), "2026-03-01T11:59:59Z")
    assert [each.status for each in seen.status.conditions] == ["True", "True", "True", "False"]
    objects = seen, policy("bad", ON_SPOT)
    acceptance = judge_objects(judged_objects, by_place(*objects), remembered(objects))
    assert acceptance.policies is None
    seen, _ = written(seen, known(seen)._replace(acceptance=acceptance, satisfied={}), NOW)
    (in_force,) = (each for each in seen.status.conditions if each.type == "InForce")
    assert in_force.status == "False"
    mentions(in_force.message, "ended", NOW)
    wording(in_force.message)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"spec": {"until": 5}}', b'{"spec": {"until": "x"}}']
)
def test_an_unreadable_end_is_not_reported(text: bytes) -> None:
    """Anybody with the right to may have written that it was accepted."""
    seen = exception("e", LATER)._replace(text=text)
    acceptance = Acceptance(
        {seen.place: (seen.version, ConditionUpdate("Accepted", "True", "Accepted"))},
        {seen.place: seen.version},
    )
    (found,) = due([seen], Knowledge(acceptance, {}, Ledger(), None), NOW)
    assert [each.type for each in found.status.conditions] == ["Accepted"]


@pytest.mark.parametrize(
    ("change", "urgency"),
    [
        ({}, None),
        ({"said": MISSING}, "now"),
        ({"served": "i"}, "soon"),
        ({"served": None}, None),
        ({"pods": 2}, "counts"),
    ],
)
def test_how_urgent_a_write_is(change: dict[str, Any], urgency: str | None) -> None:
    """What is true of the object itself goes first, what all share later, and counts last."""
    seen, _ = written(policy("p"), known(policy("p")))
    _, next_ = written(seen, known(seen, **change), LATER)
    assert (next_ and next_.urgency) == urgency


def test_numbers_in_a_message_are_not_urgent() -> None:
    """A node more among those that do not fit is no news."""
    seen, _ = written(policy("p"), known(policy("p"), said=MISSING))
    more = MISSING._replace(message="none of the 4 nodes")
    _, next_ = written(seen, known(seen, said=more), LATER)
    assert next_ is not None
    assert next_.urgency == "soon"


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    """Another reason, message or generation is no transition."""
    seen, _ = written(policy("p"), known(policy("p"), said=MISSING))
    edited = seen._replace(generation=2)
    seen, _ = written(edited, known(edited, said=MISSING._replace(message="none")), LATER)
    assert {each.last_transition_time for each in seen.status.conditions} == {NOW}
    seen, _ = written(seen, known(seen), LATER)
    times = {each.type: each.last_transition_time for each in seen.status.conditions}
    assert times == {"Accepted": NOW, "Satisfiable": LATER, "Served": NOW}


def test_nothing_is_reported_of_a_version_that_was_not_judged() -> None:
    """Whoever reads the status would take it for the new one's."""
    newer = policy("p", generation=2)
    assert list(due([newer], known(policy("p")), NOW)) == []


def test_a_concurrent_write_is_not_reverted() -> None:
    """Counts never go down."""
    seen = policy("p", status=PolicyStatus(pods_decided=9, pods_rejected=3, since=NOW))
    behind = known(policy("p"))
    seen, _ = written(seen, behind)
    status = seen.status
    assert isinstance(status, PolicyStatus)
    assert (status.pods_decided, status.pods_rejected) == (9, 3)


@given(
    st.integers(1, 3),
    st.sampled_from([FOUND, MISSING]),
    st.sampled_from(["h", "i", None]),
    st.integers(0, 3),
)
@settings(deadline=None)
def test_the_same_knowledge_is_written_once(
    generation: int, said: ConditionUpdate, served: str | None, pods: int
) -> None:
    """What was written of it leaves nothing due, at any later time."""
    seen = policy("p", generation=generation)
    knowledge = known(seen, said=said, served=served, pods=pods)
    seen, first = written(seen, knowledge)
    assert first is not None
    assert list(due([seen], knowledge, LATER)) == []


def served_in(seen: ObservedObject) -> tuple[str, str]:
    """Status and reason of the condition Served."""
    (found,) = [each for each in seen.status.conditions if each.type == SERVED]
    return found.status, found.reason


def test_a_version_is_served_once_every_replica_has_its_set() -> None:
    """One with another set, or one that does not answer, is enough to wait."""
    seen = policy("p")
    acceptance = known(seen).acceptance
    assert acceptance.policies is not None
    own = acceptance.policies.hash[:16]
    unknown, _ = written(seen, known(seen, served=None))
    assert SERVED not in {each.type for each in unknown.status.conditions}
    assert served_in(written(seen, known(seen, served="other"))[0]) == ("False", "NotByAll")
    waiting, _ = written(seen, known(seen, served=own, unheard=("b",)))
    assert served_in(waiting) == ("False", "NotByAll")
    there, _ = written(waiting, known(seen, served=own))
    assert served_in(there) == ("True", "ByAllReplicas")
    # Another object changes the set: this version is in that one, too.
    kept, _ = written(there, known(seen, policy("q"), served=own))
    assert served_in(kept) == ("True", "ByAllReplicas")
    # Without any answer nothing is known; without a replica nothing is served.
    silent = known(seen, unheard=("a",))._replace(served=())
    hung, _ = written(kept, silent)
    assert served_in(hung) == ("Unknown", "NoAnswer")
    gone, _ = written(kept, silent._replace(unheard=()))
    assert served_in(gone) == ("False", "NoReplica")
    assert served_in(written(hung, known(seen, served=own))[0]) == ("True", "ByAllReplicas")
    edited = policy("p", generation=2)._replace(status=kept.status)
    assert served_in(written(edited, known(edited, served="other"))[0]) == ("False", "NotByAll")
