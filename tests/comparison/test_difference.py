"""In which fields two placements differ."""

from __future__ import annotations

from webhook import names
from webhook.comparison.difference import gaps
from webhook.placement.pod import parse_pod


def test_labels_of_our_own_are_no_part_of_a_placement() -> None:
    """A pod that an older controller created lacks one that today's writes."""
    older = {"metadata": {"labels": {names.RUN: "r", "team": "a"}}, "spec": {"containers": []}}
    today = {
        "metadata": {"labels": {names.RUN: "r", names.REPLICAS: "4", "team": "b"}},
        "spec": {"containers": []},
    }
    (gap,) = gaps(parse_pod(older), parse_pod(today))
    assert gap == ("labels[team]", "a", "b")
