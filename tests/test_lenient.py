"""What is stored is read as far as it can be."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from webhook.lenient import Finding, Reported, Words, read, readable, salvage, without
from webhook.strict import Strict


def _below_ten(number: int) -> None:
    if number >= 10:
        raise ValueError("is too large")


class Part(Reported):
    """A part of a status."""

    since: str = Field(description="Since when.")
    amount: Annotated[int, readable(_below_ten)] = Field(default=0, description="How much.")


class Whole(Reported):
    """A status."""

    phase: Annotated[str, Words(("On", "Off"))] = Field(default="On", description="The phase.")
    parts: tuple[Part, ...] = Field(default=(), description="The parts.")
    one: Part | None = Field(default=None, description="Another part.")


class Written(Strict):
    """What an author writes."""

    name: str = Field(description="The name.")
    count: int = Field(default=1, description="How many.")


def test_unknown_fields_are_written_again_as_they_are() -> None:
    """At every depth, in copies too."""
    stored = {"phase": "Off", "later": {"a": [None, 1]}, "parts": [{"since": "t", "later": 2}]}
    value = read(Whole, stored).value.model_copy(update={"phase": "On"})
    written = value.model_dump(by_alias=True, exclude_none=True)
    assert written["later"] == {"a": [None, 1]}
    assert written["parts"] == ({"since": "t", "amount": 0, "later": 2},)
    assert value.unknown_fields() == '{"later":{"a":[null,1]}}'
    assert Whole().unknown_fields() == ""


def test_a_word_that_is_not_known_is_kept_and_found() -> None:
    """It is a text like any other."""
    found = read(Whole, {"phase": "Dimmed"})
    assert found.value.phase == "Dimmed"
    assert found.unknown == (
        Finding(("phase",), "'Dimmed' is not known; this version knows On, Off"),
    )
    assert found.unread == ()


@pytest.mark.parametrize(
    ("stored", "path", "left"),
    [
        ({"phase": 3, "parts": [{"since": "t"}]}, ("phase",), Whole(parts=(Part(since="t"),))),
        ({"phase": "Off", "parts": 7}, ("parts",), Whole(phase="Off")),
        ({"phase": "Off", "one": {"amount": 1}}, ("one",), Whole(phase="Off")),
        ({"phase": "Off", "one": {"since": []}}, ("one", "since"), Whole(phase="Off")),
        (
            {"parts": [{"since": "a", "amount": 10}, {"since": "b"}]},
            ("parts", 0, "amount"),
            Whole(parts=(Part(since="a"), Part(since="b"))),
        ),
        ("on", (), Whole()),
    ],
)
def test_a_value_that_cannot_be_read_leaves_the_others(
    stored: object, path: tuple[str | int, ...], left: Whole
) -> None:
    """It alone is left out, or the least that means nothing without it."""
    found = read(Whole, stored)
    assert found.value == left
    assert [each.path for each in found.unread] == [path]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["phase", "parts", "one", "since", "amount"]), inner)
    ),
    max_leaves=12,
)


@given(anything)
def test_reading_never_raises(stored: Any) -> None:
    """Whatever is stored."""
    assert isinstance(read(Whole, stored).value, Whole)


def test_of_what_an_author_wrote_the_valid_rest_can_be_salvaged() -> None:
    """If enough of it is left."""
    assert salvage(Written, {"name": "a", "later": 1})[0] == Written(name="a")
    assert salvage(Written, {"count": 2})[0] is None


def test_values_are_left_out_by_their_paths() -> None:
    """The document stays as it is."""
    document = {"a": [1, {"b": 2, "c": 3}, 4], "d": 5}
    assert without(document, [("a", 0), ("a", 1, "b"), ("d",)]) == {"a": [{"c": 3}, 4]}
    assert document["d"] == 5
