"""The annotation by which a pod's author asks of capacity classes."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wording import Wording, mentions
from webhook.placement.capacity import MODES, Mode
from webhook.placement.capacity_request import InvalidRequest, Request, formatted, parse

CLASSES = ("spot", "on-demand", "gpu")


@given(
    st.lists(
        st.builds(
            lambda c, m, w: Request(c, m, w) if m == "Prefer" else Request(c, m),
            st.sampled_from(CLASSES),
            st.sampled_from(MODES),
            st.integers(1, 100),
        ),
        unique_by=lambda request: request.class_name,
    )
)
def test_what_is_written_is_read_back(requests: list[Request]) -> None:
    """The controller writes it, the webhook reads it."""
    assert parse(formatted(requests), CLASSES) == tuple(requests)


def test_blanks_and_empty_entries_do_not_matter() -> None:
    """It is written by hand."""
    assert parse(" spot = Constrain , gpu=Prefer : 80,", CLASSES) == (
        Request("spot", Mode.CONSTRAIN),
        Request("gpu", Mode.PREFER, 80),
    )
    assert parse("", CLASSES) == ()


def test_all_errors_are_reported_at_once(wording: Wording) -> None:
    """With what is allowed."""
    with pytest.raises(InvalidRequest) as caught:
        parse("a=Allow,spot=Often,gpu=Prefer:0,on-demand=Allow:5,", CLASSES)
    message = str(caught.value)
    mentions(message, "class 'a' (classes: gpu, on-demand, spot)")
    mentions(message, "'Often'", "Allow, Prefer, Constrain, Prevent, None")
    assert message.count("from 1 to 100") == 2
    wording(message)


def test_an_annotation_that_is_wrong_all_over_costs_little() -> None:
    """It may be megabytes long, and each message lists the classes: 500 MB if all were made."""
    classes = [f"class-{number}" for number in range(100)]
    tracemalloc.start()
    with pytest.raises(InvalidRequest, match="299992 entries after these"):
        parse("a," * 300_000, classes)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50_000_000


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never anything else."""
    try:
        assert isinstance(parse(text, CLASSES), tuple)
    except InvalidRequest as error:
        assert "fairlead.dev/capacity" in str(error)  # noqa: PT017  either outcome is right
