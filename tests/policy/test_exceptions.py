"""Which exceptions have to do with a pod, when, and what they take away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from tests.objects import an_object
from tests.policy.test_model import an_exception
from tests.wording import Wording, mentions
from webhook.errors import InvalidDocuments
from webhook.identity import Identity
from webhook.policy import policy_documents
from webhook.policy.exceptions import Exceptions, SetAside, of_time
from webhook.policy.load import Loaded, load
from webhook.policy.model import PlacementException
from webhook.policy.policy_set import PolicySet
from webhook.policy.subject import Subject

END = datetime(2026, 12, 1, 18, tzinfo=UTC)
BEFORE = END - timedelta(seconds=1)
WORKER = Subject(
    "research",
    {},
    {"debug": "anna"},
    Identity("r", "job", None, "worker", 0, coordinator=False, source="fairlead"),
    frozenset(),
    frozenset(),
)
NOW = datetime(2026, 11, 1, tzinfo=UTC)
POLICY = an_object(
    "fairlead.dev/v1alpha1", "PlacementPolicy", "spot", {"defaults": {"labels": {"team": "x"}}}
)


def exceptions(**specs: dict[str, Any]) -> Exceptions:
    """The compiled exceptions of these names, each with what differs from the usual one."""
    found = []
    for name, spec in specs.items():
        document = {**an_exception(**spec), "metadata": {"name": name}}
        found.append(PlacementException.model_validate(document))
    return Exceptions(found)


def told(aside: SetAside) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """What is taken away, and what would have been."""
    return aside.by_name, {taken.exception.name: taken.policies for taken in aside.ended}


def test_a_set_without_exceptions_has_none() -> None:
    """So that nothing is asked of it for any pod."""
    assert not Exceptions([])
    assert exceptions(a={})


def test_an_end_is_a_moment_whatever_its_zone() -> None:
    """18:00 at +01:00 is 17:00 in UTC, and is told so."""
    (only,) = exceptions(a={"until": "2026-12-01T18:00:00+01:00"})
    assert only.end == "2026-12-01T17:00:00Z"
    assert not only.in_force(END - timedelta(hours=1))
    assert only.in_force(END - timedelta(hours=1, seconds=1))


def test_a_reason_of_several_lines_is_reported_in_one() -> None:
    """Logs and tables have one line for it."""
    (only,) = exceptions(a={"reason": "first line\n  second line\n"})
    assert only.reason == "first line second line"


def test_a_set_can_go_by_the_exceptions_of_another() -> None:
    """Its policies and its hash stay its own, and it asks for what those exceptions ask for."""
    document = PlacementException.model_validate(
        {**an_exception(match={"podSelector": {"matchLabels": {"debug": "anna"}}})}
    )
    theirs = PolicySet([], {}, "theirs", [document])
    ours = PolicySet([], {}, "ours")
    both = ours.with_exceptions_of(theirs)
    assert (both.hash, list(both.exceptions)) == ("ours", list(theirs.exceptions))
    assert both.tested["pod_selector"] == {("debug", "anna")}
    assert not ours.exceptions
    assert "pod_selector" not in ours.tested


def loaded(**spec: Any) -> Loaded:
    """The set of a policy and an exception."""
    return load({"a.json": orjson.dumps(POLICY), "b.json": orjson.dumps(an_exception(**spec))})


def test_an_exception_counts_in_the_hash_and_is_not_a_policy() -> None:
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
    documents = policy_documents.parse(
        {"a.json": orjson.dumps(an_exception(until=until))}
    ).documents
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
