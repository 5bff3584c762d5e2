"""How many GPUs a container asks for."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.run.plan import gpus


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        (None, 0),
        ({}, 0),
        ({"limits": None, "requests": "all"}, 0),
        ({"limits": {"nvidia.com/gpu": 2, "cpu": 8}}, 2),
        ({"limits": {"amd.com/gpu": "4"}}, 4),
        ({"limits": {"example.com/gpu": "1", "nvidia.com/gpu": 1}}, 2),
        ({"requests": {"nvidia.com/gpu": 2}}, 2),
        # Both say the same of an extended resource, and it is not two times two.
        ({"requests": {"nvidia.com/gpu": 2}, "limits": {"nvidia.com/gpu": 2}}, 2),
        ({"limits": {"nvidia.com/gpu": "two"}}, 0),
        ({"limits": {"gpu": 1, "nvidia.com/gpu-memory": 7}}, 0),
    ],
)
def test_gpus_are_counted_by_the_end_of_their_name(resources: Any, count: int) -> None:
    """In limits or requests, as numbers or texts."""
    assert gpus(resources) == count
