"""Text that others wrote is read within bounds, and raises one error."""

from __future__ import annotations

import copy
import json
import re
from contextlib import suppress
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import webhook
from tests import hostile
from tests.wording import Wording, mentions
from webhook import names
from webhook.decision.arrival import history_of
from webhook.errors import UnreadableText
from webhook.foreign_text import (
    MOST_CHARACTERS,
    MOST_DEPTH,
    annotation,
    parse_count,
    parse_list,
    parse_moment,
    parse_object,
    split_names,
    whole_number,
)
from webhook.placement.capacity import Mode
from webhook.placement.fallback import Fallback
from webhook.placement.node_affinity import avoided_nodes
from webhook.placement.stamp_text import read_given_up, read_stamp, read_waits

KEY = names.PLACEMENT
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["set", "policies", "exceptions", "fallback", "leftAlone", "asOf", "events", "class", "time"]
)
OURS = st.dictionaries(FIELDS, ANYTHING | st.dictionaries(FIELDS, ANYTHING, max_size=3), max_size=4)


def test_a_text_is_an_object_within_bounds_or_the_one_error() -> None:
    """Python's own functions, which recurse, can work with it."""
    for text in hostile.TEXTS.values():
        with suppress(UnreadableText):
            found = parse_object(text)
            assert isinstance(found, dict)
            assert copy.deepcopy(found) == found
            json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["JSON object"]),
        ("[1]", ["JSON object", "[1]"]),
        ('{"a":' * (MOST_DEPTH + 1) + "1" + "}" * (MOST_DEPTH + 1), [str(MOST_DEPTH), "levels"]),
        ('"' + "x" * MOST_CHARACTERS + '"', ["262,144", "262,146", "characters"]),
    ],
)
def test_what_is_no_object_within_bounds_is_named(
    text: str, words: list[str], wording: Wording
) -> None:
    with pytest.raises(UnreadableText) as raised:
        parse_object(text)
    mentions(str(raised.value), *words)
    wording(str(raised.value))


def test_the_deepest_object_is_read() -> None:
    """However many there are beside each other."""
    deep = '{"a":' * MOST_DEPTH + "1" + "}" * MOST_DEPTH
    assert json.dumps(parse_object(deep), separators=(",", ":")) == deep
    assert len(parse_object(f'{{"b":[[],[],[]],"a":{deep[5:-1]}}}')) == 2


@pytest.mark.parametrize("text", hostile.TIMES.values(), ids=hostile.TIMES)
def test_a_time_that_sums_could_leave_the_calendar_with_is_none(text: str) -> None:
    """With any span that a policy may set; and so is one without a zone."""
    with pytest.raises(UnreadableText):
        parse_moment(text)


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59+00:00"])
def test_the_first_and_the_last_time_are_read(text: str) -> None:
    found = parse_moment(text)
    assert found.astimezone(UTC) + timedelta(hours=99_999) > found


@pytest.mark.parametrize(
    "value", [True, 1.0, "1", None, 0, 11, int(hostile.DIGITS[:4000]), [1], {"a": 1}]
)
def test_a_count_is_a_whole_number_within_its_bounds(value: object) -> None:
    with pytest.raises(UnreadableText):
        parse_count(value, 1, 10)
    assert parse_count(10, 1, 10) == 10


@pytest.mark.parametrize("value", [None, {}, "ab", [1, 2, 3]])
def test_a_list_has_at_most_so_many_entries(value: object) -> None:
    with pytest.raises(UnreadableText):
        parse_list(value, 2)
    assert parse_list([1, 2], 2) == [1, 2]


def test_a_whole_number_has_one_to_nine_digits() -> None:
    assert [whole_number(text) for text in ("0", "0012", "9" * 9)] == [0, 12, 999_999_999]
    for value in ("", "-1", "+1", "1.0", " 1", "\u0661", "1_0", "9" * 10, 3, None, ["1"]):
        assert whole_number(value) is None


def test_names_are_split_up_to_a_limit() -> None:
    """Each once, valid or not; what comes after is not looked at."""
    assert split_names("b, a,,b ,A B,c", 3) == ["b", "a", "A B"]
    assert split_names("", 3) == []
    assert len(avoided_nodes({names.AVOID_NODES: ",".join(map(str, range(100_000)))})) == 200


@given(ANYTHING)
def test_metadata_of_any_form_has_an_annotation_s_text(value: Any) -> None:
    """A review can hold anything there."""
    for metadata in (value, {"annotations": value}, {"annotations": {KEY: value}}):
        assert isinstance(annotation(metadata, KEY), str)


@given(OURS | ANYTHING)
def test_no_value_ends_a_reader_of_annotations(value: Any) -> None:
    text = json.dumps(value, allow_nan=True)
    metadata = {"annotations": {names.PLACEMENT: text, names.HISTORY: text}}
    read_stamp(metadata)
    read_waits(metadata)
    read_given_up(metadata)
    history_of({"metadata": metadata})


def test_every_history_that_is_read_can_be_counted_with() -> None:
    """With the longest spans that a policy may set."""
    rule = Fallback(Mode.ALLOW, 1, timedelta(hours=24), timedelta(seconds=1), timedelta(hours=24))
    read = [history_of({"metadata": {"annotations": each}}) for _, each in hostile.cases()]
    histories = [each for each in read if each is not None]
    assert histories
    for each in histories:
        rule.lasts_until("spot", each)


# What parses JSON or times in other places, each with whose text that is.
OTHERS: Final = {
    "webhook/admission/review.py": "a request's body, with bounds of its own",
    "webhook/cluster_objects/heartbeat.py": "times that the API server checks",
    "webhook/cli/demo/show.py": "what the demo's own programs print",
    "webhook/questions/live/pod_search.py": "what it wrote itself",
    "webhook/questions/objects.py": "files that the user names",
    "webhook/controller/stored_run.py": "what it wrote itself",
    "webhook/controller/policies/status_writer.py": "objects of admins that were judged",
    "webhook/foreign_text.py": "the one place",
    "webhook/guards.py": "objects of admins",
    "webhook/installation/foreign_changes.py": "managedFields, which the API server writes",
    "webhook/judgement/reporting/in_force.py": "objects of admins that were judged",
    "webhook/installation/webhook_configuration.py": "times that the API server wrote",
    "webhook/judgement/reporting/statuses.py": "objects of admins that were judged",
    "webhook/cluster_objects/served_definitions.py": "objects of admins, bounded as they are read",
    "webhook/judgement/set_judgement.py": "objects of admins, which it judges",
    "webhook/judgement/write_judge.py": "objects of admins, which it judges",
    "webhook/kube/answers.py": "the API server's answers",
    "webhook/pod_schema/field_checks.py": "a file of the package",
    "webhook/policy/exceptions.py": "a field of a valid model",
    "webhook/policy_tests/runner.py": "a field of a valid model",
    "webhook/run/engine_report.py": "what run/observation.py wrote",
    "webhook/run/observation.py": "times that the API server wrote",
    "webhook/run/restarts.py": "what it wrote itself",
    "webhook/times.py": "for statuses and fields that the API server checks",
    "webhook/cli/output.py": "what it wrote itself",
    "webhook/cli/ui.py": "what it wrote itself",
    "webhook/ui/playground.py": "a request's body",
}
PARSES: Final = re.compile(r"\bjson\.loads\(|\borjson\.loads\(|\.fromisoformat\(")


def test_only_the_bounded_reader_parses_what_others_wrote() -> None:
    """A place that parses JSON or times is in the list above, with the reason."""
    root = Path(webhook.__file__).parent
    found = {
        file.relative_to(root.parent).as_posix()
        for file in root.rglob("*.py")
        if PARSES.search(file.read_text("utf-8"))
    }
    # The sandbox reads what programs print that it has started.
    assert {each for each in found if "/sandbox/" not in each} == {*OTHERS}
