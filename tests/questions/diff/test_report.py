"""What differs, as Markdown short enough for a comment."""

from __future__ import annotations

from tests.comparison.worlds import arrival, different, policies
from tests.policy_tests.writing import policy
from tests.wording import Wording, line_with
from webhook.comparison.difference import Difference, Side
from webhook.comparison.difference_report import Change, JudgedPod, Maker, report
from webhook.questions.diff.report import (
    MAX_CHARACTERS,
    Outcome,
    html,
    markdown,
    outcome_of,
    remarks,
)

LONG = "x" * 253


def outcome(*judged: JudgedPod) -> Outcome:
    """What would be printed of them."""
    empty = policies()
    return outcome_of((LONG, empty), ("new", empty), None, [], [], report(judged))


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


def test_a_page_has_every_change_and_no_text_of_others_as_html() -> None:
    """Names and reasons come from everywhere; the file loads nothing."""
    hostile = "<script>alert(1)</script>\x1b[31m"
    found = outcome(
        JudgedPod(Maker(f"Pod/{hostile}", hostile, "f"), 0, 0, rejected(hostile)),
        *(
            JudgedPod(Maker(f"Pod/p-{at}", f"team-{at}", "f"), 0, 0, rejected("arm64"))
            for at in range(60)
        ),
    )
    text = html(found)
    assert "<script" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert len(found.changes) == 61
    assert text.count("<details") == 2, "what is equal but for its namespace is one"
    assert all(f"team-{at}" in text for at in range(60))
    assert "60 pods in 60 namespaces" in text
    assert "src=" not in text
    assert "href=" not in text


def test_pods_that_go_nowhere_before_and_after_are_counted() -> None:
    """They are placed differently, and that helps nobody."""
    side = Side("placed", nodes=0)
    change = Change(
        change="moved",
        without_node=True,
        namespace="team",
        count=4,
        policies=("p",),
        fields=[],
        old=side,
        new=side,
        objects=[],
    )
    found = outcome()._replace(changes=[change])
    assert any("4 have no node before and after" in remark for remark in remarks(found))
    assert side.word == "no node"
