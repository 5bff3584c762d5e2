"""A policy that can match no pod is told so, at the condition that rules all pods out."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.policy.test_matched_pods import holds, match, matches, subjects
from webhook.policy.matched_pods import unmatchable
from webhook.policy.subject import Subject

Json = dict[str, Any]


@settings(max_examples=examples(200), deadline=None)
@given(matches, st.lists(matches, max_size=2), st.lists(subjects, min_size=1, max_size=5))
def test_a_reported_finding_holds_for_every_pod(
    written: Json, excludes: list[Json], some: list[Subject]
) -> None:
    """By the conditions themselves."""
    if unmatchable(match(written), [match(each) for each in excludes]):
        for subject in some:
            assert not holds(written, subject) or any(holds(each, subject) for each in excludes)
