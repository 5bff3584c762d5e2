"""Disabling for a time, and what undoes it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from webhook import names
from webhook.interception import rules, webhooks
from webhook.suspension import Suspension, parse_suspension, resume, suspend

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=15)
OTHER_RULES = [{**rules()[0], "operations": ["CREATE", "UPDATE"]}]


def configuration(**annotations: str) -> Json:
    """An installed webhook configuration; its second entry has rules of the admin's own."""
    entries = webhooks(["fairlead", "mlrun", "namespace"], ca_bundle=b"pem")
    entries[1]["rules"] = OTHER_RULES
    metadata: Json = {"name": "fairlead", "resourceVersion": "7"}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "webhooks": entries}


def patched(before: Json, patch: Json) -> Json:
    """RFC 7386, as far as these patches need it."""
    kept = {**before["metadata"].get("annotations", {}), **patch["metadata"]["annotations"]}
    annotations = {key: value for key, value in kept.items() if value is not None}
    assert patch["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    metadata = {**before["metadata"], "annotations": annotations, "resourceVersion": "8"}
    return {"metadata": metadata, "webhooks": patch["webhooks"]}


def disabled(until: datetime = LATER) -> Json:
    return patched(configuration(), suspend(configuration(), until))


def annotated(key: str, value: str | None) -> Json:
    """It, disabled, with another value of an annotation; None: without it."""
    found = disabled()
    annotations = {**found["metadata"]["annotations"], key: value}
    found["metadata"]["annotations"] = {k: v for k, v in annotations.items() if v is not None}
    return found


def suspension(found: Json) -> Suspension:
    seen = parse_suspension(found)
    assert seen
    return seen


def rules_of(found: Json) -> list[list[Json]]:
    return [entry["rules"] for entry in found["webhooks"]]


def test_all_rules_go_and_nothing_else() -> None:
    """Selectors, addresses and authorities stay as they are."""
    before, after = configuration(), disabled()
    assert rules_of(after) == [[], [], []]
    for one, other in zip(before["webhooks"], after["webhooks"], strict=True):
        assert {**one, "rules": []} == other


def test_the_time_is_kept_as_rfc_3339() -> None:
    """In UTC, whatever the clock of the one who asked."""
    local = LATER.astimezone(timezone(timedelta(hours=5, minutes=30)))
    annotations = disabled(local)["metadata"]["annotations"]
    assert annotations[names.DISABLED_UNTIL] == "2026-03-01T02:15:00+00:00"


def test_the_very_rules_come_back() -> None:
    """Those that were there, each in its place, and no annotation stays."""
    after = patched(disabled(), resume(disabled()))
    assert after["webhooks"] == configuration()["webhooks"]
    assert after["metadata"]["annotations"] == {}


def test_what_is_not_disabled_says_nothing() -> None:
    """Whatever other annotations it has."""
    assert parse_suspension(configuration()) is None
    assert parse_suspension(configuration(note="x")) is None


def test_a_second_time_moves_the_end_and_keeps_the_rules() -> None:
    """They are not there to be saved again."""
    again = patched(disabled(), suspend(disabled(), LATER + timedelta(hours=1)))
    seen = suspension(again)
    assert seen.until == LATER + timedelta(hours=1)
    assert patched(again, resume(again))["webhooks"] == configuration()["webhooks"]


def test_rules_are_due_when_the_time_is_over() -> None:
    """Not a moment earlier."""
    seen = suspension(disabled())
    assert not seen.due(LATER - timedelta(seconds=1))
    assert seen.due(LATER)
    assert (seen.lost, seen.problems) == ((), ())


@pytest.mark.parametrize("until", ["soon", "", "2026-03-01T02:15:00", None])
def test_a_time_that_cannot_be_read_is_over(until: str | None) -> None:
    """Who guesses would leave pods unplaced, for who knows how long."""
    found = annotated(names.DISABLED_UNTIL, until)
    seen = suspension(found)
    assert seen.due(NOW)
    assert len(seen.problems) == 1
    assert patched(found, resume(found))["webhooks"] == configuration()["webhooks"]


@pytest.mark.parametrize(
    "saved",
    ["", "{", "[]", '{"pods-0.fairlead.dev": 1}', '{"x": [1]}', '{"x": []}', "[" * 100_000, None],
)
def test_lost_rules_are_restored_in_every_entry(saved: str | None) -> None:
    """And it is told that they were lost."""
    found = annotated(names.DISABLED_RULES, saved)
    seen = suspension(found)
    assert len(seen.lost) == 3
    assert len(seen.problems) == 1
    assert not seen.due(NOW)
    assert rules_of(patched(found, resume(found))) == [rules()] * 3


def test_rules_that_a_user_restored_stay() -> None:
    """Whoever applies the manifests again has the last word; the annotations go."""
    found = disabled()
    for entry in found["webhooks"]:
        entry["rules"] = OTHER_RULES
    seen = suspension(found)
    assert seen.due(NOW)
    after = patched(found, resume(found))
    assert rules_of(after) == [OTHER_RULES] * 3
    assert after["metadata"]["annotations"] == {}


def test_an_entry_that_came_meanwhile_keeps_its_rules() -> None:
    """It is disabled for the others, until the time is over."""
    found = disabled()
    new = {**found["webhooks"][0], "name": "spark-0.fairlead.dev", "rules": OTHER_RULES}
    found["webhooks"].append(new)
    seen = suspension(found)
    assert not seen.due(NOW)
    after = patched(found, resume(found))
    assert after["webhooks"] == [*configuration()["webhooks"], new]


def test_rules_of_entries_that_went_are_not_kept() -> None:
    """A second disabling saves what is there."""
    found = disabled()
    del found["webhooks"][2]
    again = patched(found, suspend(found, LATER))
    saved = json.loads(again["metadata"]["annotations"][names.DISABLED_RULES])
    assert list(saved) == ["namespaces.fairlead.dev", "pods-0.fairlead.dev"]
