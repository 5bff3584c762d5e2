"""Random reviews against the app in process: no crash, and every answer keeps the rules."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.admission.reviews import Known, Webhook, review
from tests.fuzz.additions import Json
from tests.fuzz.effort import BATCH, batches, fuzz
from tests.fuzz.mutations import Mutation, byte_mutations, damaged, encoded, mutated, mutations
from tests.fuzz.policies import excepted_documents
from tests.fuzz.properties import Examiner
from tests.fuzz.reviews import NAMESPACES, UNKNOWN, foreign, reviews
from tests.fuzz.tally import Tally
from tests.fuzz.world import SHIPPED
from tests.laws.world import policy_set
from webhook.admission import handler
from webhook.policy.policy_set import PolicySet
from webhook.server.logs import JsonFormatter

# Sets are drawn with each review, the policies that ship among them.
policy_sets = st.one_of(st.just(SHIPPED), excepted_documents().map(policy_set))


def examined_line(record: logging.LogRecord) -> bool:
    """A filter, for the webhook's log: each record makes one line of JSON.

    An exception of the webhook's own is raised, being the best clue. Nothing is written: pytest
    would keep hundreds of thousands of lines.
    """
    line = JsonFormatter().format(record)
    assert "\n" not in line
    json.loads(line)
    if record.exc_info and record.exc_info[1]:
        raise record.exc_info[1]
    return False


class World:
    """The app, and the policies that it serves at the moment."""

    def __init__(self, tally: Tally) -> None:
        self.policies: PolicySet = SHIPPED
        self.webhook = Webhook(
            lambda: self.policies,
            namespaces=Known(NAMESPACES),
            default_priority_class=lambda: "cluster-default",
        )
        self.examiner = Examiner("in process", self.webhook.post, tally)


@pytest.fixture(scope="module")
def world(tally: Tally) -> Iterator[World]:
    """One app for all, which still answers in the end and never had an error of its own."""
    found = World(tally)
    logger = logging.getLogger(handler.__name__)
    level = logger.level
    logger.addFilter(examined_line)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.setLevel(level)
    logger.removeFilter(examined_line)
    found.policies = SHIPPED  # of random ones some reject every pod
    assert found.examiner.examine(encoded(review())).response["allowed"]
    assert found.webhook.counted("engine_errors") == 0


@fuzz(0.12)
@given(reviews(), policy_sets)
def test_a_review_of_any_pod_is_decided(world: World, sent: Json, policies: PolicySet) -> None:
    """With 200, and an answer that keeps the rules; so is the pod that its patch makes."""
    world.policies = policies
    answer = world.examiner.examine(encoded(sent))
    assert answer.status == 200, answer.body


@fuzz(0.02)
@given(foreign)
def test_a_review_of_anything_else_is_invalid(world: World, sent: Json) -> None:
    """400, with the reason."""
    assert world.examiner.examine(encoded(sent)).status == 400


@fuzz(0.01)
@given(reviews())
def test_a_pod_of_an_unknown_namespace_is_not_decided(world: World, sent: Json) -> None:
    """503, upon which the API server tries again."""
    sent["request"]["namespace"] = UNKNOWN
    assert world.examiner.examine(encoded(sent)).status == 503


@fuzz(0.5, BATCH)
@given(reviews(), policy_sets, batches(mutations))
def test_a_review_with_changes_at_any_depth_is_answered(
    world: World, sent: Json, policies: PolicySet, changes: list[list[Mutation]]
) -> None:
    """Whatever was taken away, put elsewhere, or made of another type."""
    world.policies = policies
    for several in changes:
        changed = sent
        for change in several:
            changed = mutated(changed, change)
        world.examiner.examine(encoded(changed))


@fuzz(0.35, BATCH)
@given(reviews(), batches(byte_mutations))
def test_a_review_with_damaged_bytes_is_answered(
    world: World, sent: Json, changes: list[list[Mutation]]
) -> None:
    """Whatever was cut off, flipped, put in or doubled."""
    world.policies = SHIPPED
    body = encoded(sent)
    for several in changes:
        changed = body
        for change in several:
            changed = damaged(changed, change)
        world.examiner.examine(changed)
