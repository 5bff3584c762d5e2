"""Warnings for the person at kubectl: what is said, and how much of it."""

from __future__ import annotations

from tests.admission.reviews import Webhook, pod, policy_set, review
from webhook import names
from webhook.admission.advice import MAX_CHARACTERS, warnings
from webhook.admission.decision import Decision
from webhook.identity import identify

IDENTITY = identify({names.RUN: "r"}, {}, {})


def test_a_label_that_could_not_be_read_is_told_of() -> None:
    """A slip in a label that refines is no reason to stop a pod, and nobody would find it."""
    sent = pod(labels={names.RUN: "r", names.KIND: "expriment"})
    (warning,) = Webhook(policy_set()).post(review(sent)).response["warnings"]
    assert "'expriment' is no kind" in warning


def test_a_pod_of_no_run_is_not_warned() -> None:
    """Whatever its labels are: they are not ours to read there."""
    sent = pod(labels={names.KIND: "expriment"})
    assert "warnings" not in Webhook(policy_set()).post(review(sent)).response


def test_the_engine_s_warnings_come_first() -> None:
    """Then those of labels."""
    sent = pod(labels={names.RUN: "r", names.ROLE: "boss"})
    said = warnings(sent, Decision("unchanged", warnings=("first",), identity=IDENTITY))
    assert said[0] == "first"
    assert "'boss' is no role" in said[1]


def test_warnings_that_do_not_fit_are_counted() -> None:
    """The API server would cut them anywhere: so the last one says how many there are more."""
    many = tuple(f"{number:0119}" for number in range(60))
    said = warnings(pod(), Decision("unchanged", warnings=many, identity=IDENTITY))
    assert sum(len(f"fairlead: {text}") for text in said) <= MAX_CHARACTERS
    kept = len(said) - 1
    assert tuple(said[:-1]) == many[:kept]
    assert kept > 28
    assert said[-1].startswith(f"and {60 - kept} more warnings")


def test_where_no_node_admits_the_pod_that_is_said_first_and_the_others_are_counted() -> None:
    """Each once, those that do not fit beside it as well."""
    many = tuple(f"{number:0119}" for number in range(60))
    decision = Decision("unchanged", warnings=many, identity=IDENTITY)
    first, *kept, last = warnings(pod(), decision, "0 of 5 nodes: " + "x" * 150)
    assert first.startswith("0 of 5 nodes: ")
    assert last.startswith(f"and {60 - len(kept)} more warnings")


def test_warnings_that_just_fit_are_all_there() -> None:
    """Nothing is cut that need not be: 32 times 128 characters, those who says it among them."""
    many = tuple(f"{number:0118}" for number in range(32))
    assert warnings(pod(), Decision("unchanged", warnings=many, identity=IDENTITY)) == list(many)
