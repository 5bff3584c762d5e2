"""The words for what differs, for people at a terminal."""

from __future__ import annotations

import click

from tests.comparison.worlds import NODES, arrival, different, policies
from tests.policy_tests.writing import policy
from webhook.cli.diff.text import lines
from webhook.cli.diff.words import Outcome
from webhook.comparison.difference import Difference, FieldChange
from webhook.comparison.report import Judged, Maker, report

STRICT = policy("amd64", "requirements: {nodeSelector: {arch: amd64}}")
NOWHERE = policy("nowhere", "overrides: {nodeSelector: {pool: none}}")
ARM = arrival(nodeSelector={"arch": "arm64"})
LIVE = Maker("Pod/a", "team", "cluster", live=True)


def told(*judged: Judged, nodes: int | None = 3) -> list[str]:
    """The lines below the head, with single blanks."""
    empty = policies()
    outcome = Outcome("old", "new", empty, empty, nodes, report(judged))
    return [" ".join(click.unstyle(line).split()) for line in lines(outcome)][3:]


def moved(*fields: FieldChange) -> Difference:
    """A pod that is placed otherwise, in these fields."""
    found = different([], [policy("p", "defaults: {schedulerName: s}")], arrival())
    return Difference(found.kind, found.old, found.new, ("p",), fields)


def test_live_pods_are_marked() -> None:
    """And told apart from those that templates stand for."""
    job = Maker("Job/train", "team", "cluster", count=3)
    found = told(Judged(LIVE, 0, 0, moved()), Judged(job, 0, 2, "same"))
    assert found[:2] == [
        "4 pods of runs: 1 placed otherwise",
        "live, decided on as they are: 1; by templates of workloads: 3",
    ]
    assert "1 pod in team: Pod/a (live)" in found


def test_what_is_no_difference_is_counted_all_the_same() -> None:
    """Pods that stay rejected, and pods of no run."""
    found = told(Judged(LIVE, 0, 0, "rejected"), Judged(LIVE, 1, 0, "no run"))
    assert found[0] == "1 pod of runs: all as before"
    assert "1 pod rejected before and after" in found
    assert "1 pod of no run: no policy is for them" in found


def test_a_field_has_the_sign_of_what_became_of_it() -> None:
    """New, gone, otherwise; and where a class means other nodes under the same word."""
    found = told(
        Judged(
            LIVE,
            0,
            0,
            moved(
                FieldChange("p", "defaults", "a", "", "x"),
                FieldChange("p", "defaults", "b", "x", ""),
                FieldChange("p", "defaults", "c", "x", "y"),
                FieldChange("p", "defaults", "d", "x", "x"),
                FieldChange("", "pod", "e", "", "x"),
            ),
        )
    )
    assert found[-5:] == [
        "+ p, defaults a: x",
        "- p, defaults b: x",
        "~ p, defaults c: y (before: x)",
        "~ p, defaults d: x, which means something else now",
        "+ the pod itself e: x",
    ]


def test_who_is_no_longer_rejected_is_told_with_the_old_reason() -> None:
    """And if no node would take the pod, with that."""
    found = told(Judged(LIVE, 0, 0, different([STRICT], [], ARM, NODES)))
    said = "before: policy amd64: requirements.nodeSelector[arch]: must be 'amd64'; the pod says"
    assert any(line.startswith(said) for line in found)
    assert found[-1].startswith("0 of 3 nodes admit such a pod: nodeSelector arch=arm64 on 3")


def test_nodes_that_come_back_are_counted() -> None:
    """From none to some."""
    found = told(Judged(LIVE, 0, 0, different([NOWHERE], [], arrival(), NODES)))
    assert "No longer without a node: 1 pod" in found
    assert found[-1] == "1 of 3 nodes admit such a pod, 0 did before"


def test_without_nodes_it_is_said_that_nobody_asked() -> None:
    """Only where it could matter."""
    remark = "whether any node admits them was not asked: give --nodes"
    assert remark in told(Judged(LIVE, 0, 0, moved()), nodes=None)
    assert remark not in told(Judged(LIVE, 0, 0, "same"), nodes=None)
