"""Time that is repeated because replicas run again."""

from __future__ import annotations

import pytest

from tests.run.scene import Scene, workers


@pytest.mark.parametrize(("scope", "repeated"), [("Replica", 40), ("Run", 70)])
def test_what_a_finished_replica_did_is_repeated_if_it_runs_again(
    scope: str, repeated: int
) -> None:
    """Its time is there once: what was useful becomes repeated."""
    scene = Scene(**workers(2), restartScope=scope).runs()
    scene.later(30).exits("worker-0", 0)
    (row,) = scene.status.usage
    assert (row.seconds, row.repeated_seconds) == (30, 0)
    scene.later(10).exits("worker-1", 1)
    (row,) = scene.status.usage
    assert (row.seconds, row.repeated_seconds) == (70, repeated)
