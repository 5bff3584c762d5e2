"""What is found of exceptions beside policies, and at a moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tests.policy.test_exception_model import an_exception
from tests.wording import Wording, mentions
from webhook.errors import InvalidDocuments
from webhook.policy import source
from webhook.policy.exception_checks import of_time
from webhook.policy.load import Loaded, load

NOW = datetime(2026, 11, 1, tzinfo=UTC)
POLICY = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "spot"},
    "spec": {"defaults": {"labels": {"team": "x"}}},
}


def loaded(**spec: Any) -> Loaded:
    """The set of a policy and an exception."""
    return load({"a.json": orjson.dumps(POLICY), "b.json": orjson.dumps(an_exception(**spec))})


def test_an_exception_counts_in_the_hash_and_is_no_policy() -> None:
    """The stamp tells which exceptions there were."""
    alone = load({"a.json": orjson.dumps(POLICY)}).policies
    both = loaded().policies
    assert [policy.name for policy in both.policies] == ["spot"]
    assert [each.name for each in both.exceptions] == ["debug-anna"]
    assert alone.hash != both.hash != loaded(until="2026-12-02T00:00:00Z").policies.hash
    assert not alone.exceptions


def test_a_policy_that_is_not_there_is_warned_of_with_what_may_have_been_meant(
    wording: Wording,
) -> None:
    """It may come later."""
    assert loaded().warnings == ()
    assert loaded(policies=["*"]).warnings == ()
    (warning,) = loaded(policies=["spto"]).warnings
    mentions(str(warning), "spec.policies[0]:", "no policy 'spto'", "did you mean 'spot'?")
    wording(str(warning))
    assert warning.severity == "warning"


def test_what_an_exception_selects_by_no_policy_may_write() -> None:
    """Or a second call on our own output would find another exception."""
    with pytest.raises(InvalidDocuments) as caught:
        loaded(match={"podSelector": {"matchLabels": {"team": "x"}}})
    mentions(str(caught.value), "exception debug-anna", "(spec.match.podSelector)")


def test_an_exception_for_every_run_is_warned_of(wording: Wording) -> None:
    """It is said explicitly, and still seldom meant."""
    for match in ({"namespaces": ["*"]}, {"namespaces": ["a", "**"], "podSelector": {}}):
        (warning,) = loaded(match=match).warnings
        mentions(str(warning), "spec.match", "every run")
        wording(warning.message)


def test_an_exception_that_any_author_can_take_is_warned_of(wording: Wording) -> None:
    """Labels of pods, of roles and kinds too, are their author's word; namespaces are not."""
    debug = {"podSelector": {"matchLabels": {"debug": "anna"}}}
    accounts = {"serviceAccounts": ["trainer"]}
    for match in (debug, {"roles": ["worker"]}, {"namespaces": ["*"], **debug}, accounts):
        (warning,) = loaded(match=match).warnings
        mentions(str(warning), "spec.match", "namespaces", "namespaceSelector")
        wording(warning.message)
    for where in ({"namespaces": ["a"]}, {"namespaceSelector": {"matchLabels": {"a": "b"}}}):
        assert loaded(match={**debug, **where}).warnings == ()


@pytest.mark.parametrize(
    ("until", "says"),
    [
        ("2026-10-31T23:59:59Z", "has ended"),
        ("2026-11-01T00:00:00Z", "has ended"),
        ("2026-11-01T00:00:01Z", ""),
        ("2027-01-30T00:00:00Z", ""),
        ("2027-01-30T00:00:01Z", "90 days"),
    ],
)
def test_what_has_ended_and_what_lasts_long_is_warned_of(
    until: str, says: str, wording: Wording
) -> None:
    """At the time of asking: the set itself knows no time."""
    documents = source.parse({"a.json": orjson.dumps(an_exception(until=until))}).documents
    found = [str(finding) for finding in of_time(documents, NOW)]
    assert len(found) == bool(says)
    for line in found:
        mentions(line, "warning: spec.until", says)
        wording(line)


def test_conditions_of_exceptions_are_asked_for() -> None:
    """What finding them costs is paid only where some condition names them."""
    policies = loaded(
        match={
            "resources": ["nvidia.com/gpu"],
            "volumes": ["hostPath"],
            "replicaIndexes": [0],
            "podSelector": {"matchLabels": {"debug": "anna"}},
        }
    ).policies
    assert policies.tested["resources"]
    assert policies.tested["volumes"]
    assert policies.tested["replica_indexes"] == {0}
    assert policies.tested["pod_selector"] == {("debug", "anna")}
