"""What an empty node has room for."""

from __future__ import annotations

import pytest

from webhook.placement.room import Lack, lacking

NODE = {"cpu": 8000, "memory": 32, "pods": 110}


@pytest.mark.parametrize(
    ("requests", "lack"),
    [
        ({}, None),
        ({"cpu": 8000, "memory": 32}, None),
        ({"cpu": 8001}, Lack("cpu", 8001, 8000)),
        ({"nvidia.com/gpu": 1}, Lack("nvidia.com/gpu", 1, 0)),
        ({"nvidia.com/gpu": 1, "cpu": 9000}, Lack("cpu", 9000, 8000)),
    ],
)
def test_a_request_may_be_all_that_there_is(requests: dict[str, int], lack: Lack | None) -> None:
    """More than that is named; of several the first by name."""
    assert lacking(requests, NODE) == lack


def test_a_node_that_takes_no_pods_takes_none() -> None:
    """Whatever else it has."""
    assert lacking({}, {"cpu": 8000}) == Lack("pods", 1, 0)


def test_of_a_node_that_says_nothing_nothing_is_said() -> None:
    """It may have been read from a file without its status."""
    assert lacking({"cpu": 1000}, None) is None
