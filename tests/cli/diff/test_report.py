"""What differs, as text for a terminal and as Markdown short enough for a comment."""

from __future__ import annotations

import re

import click

from tests.comparison.worlds import NODES, arrival, different, policies
from tests.policy_tests.writing import policy
from tests.wording import Wording, line_with, mentions
from webhook.cli.diff.report import MAX_CHARACTERS, Outcome, lines, markdown, outcome_of
from webhook.comparison.difference import Difference, FieldChange
from webhook.comparison.difference_report import JudgedPod, Maker, report

STRICT = policy("amd64", "requirements: {nodeSelector: {arch: amd64}}")
NOWHERE = policy("nowhere", "overrides: {nodeSelector: {pool: none}}")
ARM = arrival(nodeSelector={"arch": "arm64"})
LIVE = Maker("Pod/a", "team", "cluster", live=True)


def told(*judged: JudgedPod, nodes: int | None = 3) -> list[str]:
    """The lines below the head, with single blanks."""
    empty = policies()
    found = outcome_of(("old", empty), ("new", empty), nodes, [], report(judged))
    return [" ".join(click.unstyle(line).split()) for line in lines(found)][3:]


def moved(*fields: FieldChange) -> Difference:
    """A pod that is placed differently, in these fields."""
    found = different([], [policy("p", "defaults: {schedulerName: s}")], arrival())
    return Difference(found.kind, found.old, found.new, ("p",), fields)


def test_live_pods_are_marked(wording: Wording) -> None:
    """And told apart from those that templates stand for."""
    job = Maker("Job/train", "team", "cluster", count=3)
    found = told(JudgedPod(LIVE, 0, 0, moved()), JudgedPod(job, 0, 2, "same"))
    total, kinds = found[:2]
    assert re.findall(r"live.*: (\d+); .*templates.*: (\d+)", kinds) == [("1", "3")]
    wording(f"{total}\n{kinds}")
    line_with(found, "1 pod in team: Pod/a (live)")


def test_a_field_has_the_sign_of_what_became_of_it(wording: Wording) -> None:
    """New, gone, otherwise; and where a class means other nodes under the same word."""
    found = told(
        JudgedPod(
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
    new, gone, other, same_word, own = found[-5:]
    assert (new, gone) == ("+ p, defaults a: x", "- p, defaults b: x")
    assert other == "~ p, defaults c: y (before: x)"
    assert same_word.startswith("~ p, defaults d: x")
    mentions(same_word, "another meaning")
    assert (own[0], own.endswith("pod itself e: x")) == ("+", True)
    wording("\n".join(found[-5:]))


def test_a_pod_that_is_no_longer_rejected_has_the_old_reason(wording: Wording) -> None:
    """And if no node would take the pod, with that."""
    found = told(JudgedPod(LIVE, 0, 0, different([STRICT], [], ARM, NODES)))
    line_with(found, "before: policy amd64: ", "requirements.nodeSelector[arch]: ", "'amd64'")
    assert "before" not in found[-1]
    wording(found[-1])


def test_nodes_that_come_back_are_counted(wording: Wording) -> None:
    """From none to some."""
    found = told(JudgedPod(LIVE, 0, 0, different([NOWHERE], [], arrival(), NODES)))
    line_with(found, "No longer without a node: 1 pod")
    wording(found[-1])


LONG = "x" * 253


def outcome(*judged: JudgedPod) -> Outcome:
    """What would be printed of them."""
    empty = policies()
    return outcome_of((LONG, empty), ("new", empty), None, [], report(judged))


def rejected(value: str) -> Difference:
    """A pod that is rejected for a word of its own."""
    strict = policy("amd64", "requirements: {nodeSelector: {arch: amd64}}")
    return different([], [strict], arrival(nodeSelector={"arch": value}))


def test_many_changes_are_cut_and_counted(wording: Wording) -> None:
    """However long their names and reasons are."""
    found = outcome(
        *(
            JudgedPod(
                Maker(f"Pod/{LONG}-{at}", f"{LONG}-{at % 50}", "f"), 0, 0, rejected(f"{at}{LONG}")
            )
            for at in range(200)
        )
    )
    text = markdown(found)
    assert len(text) < MAX_CHARACTERS + 100
    wording(line_with(text, "20 more rows"))
    wording(line_with(text, "180 more kinds of change", "180 pods"))


def test_many_pods_of_one_change_are_one_line(wording: Wording) -> None:
    """The first few by name."""
    same = rejected("arm64")
    found = outcome(
        *(JudgedPod(Maker(f"Pod/p-{at:04}", "team", "f"), 0, 0, same) for at in range(1000))
    )
    names = "Pod/p-0000, Pod/p-0001, Pod/p-0002"
    wording(line_with(markdown(found), "1,000 pods in `team`: ", f"`{names} and 997 more`"))


def test_code_ends_where_it_should() -> None:
    """Backticks of others end no code of ours (CommonMark 0.31, 6.1 and 4.5)."""
    found = outcome(JudgedPod(Maker("Pod/`a``", "te|am", "f"), 0, 0, rejected("```")))
    text = markdown(found)
    assert "``` Pod/`a`` ```" in text
    assert "````diff\n" in text
    assert "| `te\\|am` |" in text
