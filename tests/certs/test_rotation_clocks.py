"""A rotation that one controller begins and another ends, whose clock is not the first one's."""

from __future__ import annotations

from datetime import timedelta

import pytest

from certs.kept import Authority
from certs.rotation import phase
from tests.certs.world import SETTLE, SKEW, Cluster

SECOND = timedelta(seconds=1)


def _look(cluster: Cluster, skew: timedelta) -> str:
    """A controller does what is due, and replicas take what they read; the phase then."""
    for _ in cluster.controller(skew):
        assert cluster.refused() == []
    for number in range(3):
        cluster.replica_reads(number)
        cluster.replica_is_ready(number)
    assert cluster.refused() == []
    return phase(Authority.read(cluster.authority.data or {}))


@pytest.mark.parametrize("skew", [-SKEW, SKEW])
def test_different_clocks_cause_no_failed_handshake(skew: timedelta) -> None:
    """What API servers have of the settling time gets shorter by that, and is enough."""
    cluster = Cluster()
    for number in range(3):
        cluster.replica_starts(number)
    assert _look(cluster, timedelta(0)) == "steady"
    cluster.passes(SETTLE)
    cluster.authority.write(cluster.authority.data, asked=True)
    assert _look(cluster, timedelta(0)) == "published"
    seen = ["published"]
    while seen[-1] != "steady":
        cluster.passes(SECOND)
        now = _look(cluster, skew)
        seen += [now] * (now != seen[-1])
    assert seen == ["published", "retiring", "steady"]
