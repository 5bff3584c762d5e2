"""Which exceptions have to do with a pod, when, and what they take away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from tests.objects import an_object
from tests.policy.test_model import an_exception
from webhook.policy.exceptions import Exceptions
from webhook.policy.load import Loaded, load
from webhook.policy.model import PlacementException
from webhook.policy.policy_set import PolicySet

END = datetime(2026, 12, 1, 18, tzinfo=UTC)
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
