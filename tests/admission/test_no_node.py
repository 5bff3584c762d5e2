"""What comes of it that no node admits a pod: a warning, a count, a line, and its owner hears."""

from __future__ import annotations

import logging

import pytest

from tests.admission.reviews import POOL, Webhook, pod, policy_set, review
from tests.wording import Wording, mentions
from webhook.decision.advice import MAX_CHARACTERS
from webhook.decision.notice import NO_NODE, Notice
from webhook.decision.prospects import Prospects
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node

SAID = "0 of 1 nodes: pool=experiments (policy pool-required)"
OWNED = {
    "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    ]
}


def webhook(told: list[Notice] | None = None, **labels: str) -> Webhook:
    """A webhook that knows one node with these labels."""
    prospects = Prospects(NodeGroups([Node("n", labels, [])]))
    told = [] if told is None else told
    return Webhook(policy_set(POOL), tell=told.append, unplaceable=prospects.unplaceable)


def test_the_pod_is_admitted_with_a_warning() -> None:
    """It is placed as ever: nodes come and go."""
    server = webhook()
    answer = server.post(review())
    assert answer.response["allowed"]
    (warning,) = answer.response["warnings"]
    assert warning.startswith(f"fairlead: pod p: {SAID} ")
    assert answer.patch == webhook(pool="experiments").post(review()).patch
    assert server.counted("unplaceable") == 1


def test_a_pod_with_a_node_produces_no_warning() -> None:
    server = webhook(pool="experiments")
    assert "warnings" not in server.post(review()).response
    assert server.counted("unplaceable") == 0


def test_the_owner_gets_an_event() -> None:
    """By the same words; of a dry run nobody does, and none is counted."""
    told: list[Notice] = []
    server = webhook(told)
    came = pod()
    came["metadata"] |= OWNED
    assert server.post(review(came, dryRun=True)).response["warnings"]
    assert told == []
    assert server.counted("unplaceable") == 0
    server.post(review(came))
    (notice,) = told
    assert (notice.owner.name, notice.reason) == ("j", NO_NODE)
    assert notice.message(notice.owner).startswith(f"{SAID} ")


def test_it_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """At info, though most decisions are told at debug alone."""
    caplog.set_level(logging.INFO)
    webhook(pool="experiments").post(review())
    assert not caplog.records
    webhook().post(review())
    (record,) = caplog.records
    assert record.__dict__["no_node"].startswith(f"{SAID} ")
    assert record.levelno == logging.INFO


def test_an_error_of_the_look_at_nodes_refuses_no_pod(
    caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    """It is but a warning; the error is counted and logged."""

    def fails(*_: object) -> str:
        raise ValueError("odd")

    server = Webhook(policy_set(POOL), unplaceable=fails)
    answer = server.post(review())
    assert answer.response["allowed"]
    assert answer.patch
    assert server.counted("engine_errors") == 1
    (record,) = caplog.records
    assert record.exc_info
    mentions(record.getMessage(), "nodes")
    wording(record.getMessage())


def test_the_warning_comes_before_all_others() -> None:
    """Of what does not fit, the rest is cut."""
    server = Webhook(policy_set(POOL), unplaceable=lambda *_: "x" * 200)
    labels = {f"fairlead.dev/odd-{at}": "v" for at in range(80)} | {"fairlead.dev/run": "r"}
    said = server.post(review(pod(labels=labels))).response["warnings"]
    assert said[0] == "fairlead: pod p: " + "x" * 200
    assert len(said) > 1
    assert sum(map(len, said)) <= MAX_CHARACTERS
