"""Which exceptions have to do with a pod, when, and what they take away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.policy.test_exception_model import an_exception
from webhook.identity import Identity
from webhook.policy.exception_model import PlacementException
from webhook.policy.exceptions import NOTHING, Exceptions, SetAside
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


def test_an_exception_takes_away_what_it_names_until_its_end() -> None:
    """To the second: at its end it has ended."""
    found = exceptions(a={})
    assert told(found.set_aside(["spot", "pool"], WORKER, BEFORE)) == ({"a": ("spot",)}, {})
    assert told(found.set_aside(["spot", "pool"], WORKER, END)) == ({}, {"a": ("spot",)})


def test_without_a_time_nothing_is_in_force_and_nothing_has_ended() -> None:
    """Whoever does not know the time cannot tell."""
    assert exceptions(a={}).set_aside(["spot"], WORKER, None) is NOTHING


@pytest.mark.parametrize(
    "spec",
    [
        {"match": {"roles": ["ps"]}},
        {"match": {"namespaces": ["ml-*"]}},
        {"match": {"roles": ["worker"], "podSelector": {"matchLabels": {"debug": "ben"}}}},
        {"policies": ["other"]},
    ],
)
def test_a_pod_that_it_does_not_match_is_no_matter_to_it(spec: dict[str, Any]) -> None:
    """Nor are policies that it does not name."""
    assert told(exceptions(a=spec).set_aside(["spot"], WORKER, BEFORE)) == ({}, {})


def test_two_exceptions_to_one_policy_are_both_named() -> None:
    """And one that has ended with what is not taken away all the same."""
    found = exceptions(
        c={"policies": ["spot", "pool"], "until": "2026-11-01T00:00:00Z"},
        b={"policies": ["*"], "match": {"namespaces": ["r*"]}},
        a={},
    )
    assert [each.name for each in found] == ["a", "b", "c"]
    every = ("spot", "pool")
    assert told(found.set_aside(every, WORKER, BEFORE)) == ({"a": ("spot",), "b": every}, {})
    elsewhere = WORKER._replace(namespace="ml")
    aside = found.set_aside(every, elsewhere, BEFORE)
    assert told(aside) == ({"a": ("spot",)}, {"c": ("pool",)})
    assert aside.policies == {"spot"}


def test_an_end_is_a_moment_whatever_its_zone() -> None:
    """18:00 at +01:00 is 17:00 in UTC, and is told so."""
    (only,) = exceptions(a={"until": "2026-12-01T18:00:00+01:00"})
    assert only.end == "2026-12-01T17:00:00Z"
    assert not only.in_force(END - timedelta(hours=1))
    assert only.in_force(END - timedelta(hours=1, seconds=1))


def test_a_reason_of_several_lines_is_told_in_one() -> None:
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
