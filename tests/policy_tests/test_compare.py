"""What holds what, where tests speak of a part of a field."""

import pytest

from webhook.policy_tests.compare import holds, shown


@pytest.mark.parametrize(
    ("seen", "wanted", "answer"),
    [
        ({"a": "1", "b": "2"}, {"a": "1"}, True),
        ({"a": "1"}, {"a": "1", "b": "2"}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, True),
        ([{"a": 1, "b": 2}, {"a": 3}], [{"a": 3}, {"b": 2}], True),
        ([{"a": 1}], [{"a": 1}, {"a": 2}], False),
        ([], [], True),
        (None, [], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": "1"}, {"a": 1}, False),
        (["a"], {"a": 1}, False),
    ],
)
def test_a_whole_holds_its_parts(seen: object, wanted: object, answer: bool) -> None:
    """Maps by member, lists by item in any order, and a number is no text and no boolean."""
    assert holds(seen, wanted) is answer


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unset"), ("", "unset"), ({}, "unset"), (0, "0"), ({"a": "ü"}, '{"a": "ü"}')],
)
def test_values_are_shown_in_a_line(value: object, text: str) -> None:
    """Nothing is called unset, for the API server cannot tell empty from absent either."""
    assert shown(value) == text
