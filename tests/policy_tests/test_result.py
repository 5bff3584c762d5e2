"""What holds what, where tests speak of a part of a field."""

import pytest

from webhook.policy_tests.policy_test_model import Fields
from webhook.policy_tests.result import equals, format_value, holds


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
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("expected", "spec", "same"),
    [
        ({"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}, True),
        ({"terminationGracePeriodSeconds": 0}, {}, False),
        ({"schedulerName": ""}, {}, True),
        ({"nodeSelector": {}}, {"nodeSelector": None}, True),
    ],
)
def test_a_number_is_never_unset(
    expected: dict[str, object], spec: dict[str, object], same: bool
) -> None:
    """Zero seconds are a value, where an empty text or map is none."""
    found = list(equals(Fields.model_validate(expected), {"metadata": {}, "spec": spec}))
    assert (not found) is same
