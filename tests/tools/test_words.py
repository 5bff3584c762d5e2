"""Pages hold the rules for words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.words import CELL, SENTENCE, SYNONYMS, faults

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("policies/*.md")])
# Words of a how-to, with its examples.
LONGEST = 1500
# Decisions up to this one are records of their time. Later ones hold the rules, as all pages do.
LAST_RECORD = 132


def is_record(page: Path) -> bool:
    return page.parent.name == "decisions" and int(page.name[:4]) <= LAST_RECORD


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not is_record(page)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_a_page_holds_the_rules(page: Path) -> None:
    """Short sentences that begin with who acts, and cells with one fact."""
    assert [*faults(page)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs/guides").glob("*.md")), ids=lambda p: p.stem)
def test_a_how_to_names_its_reader_what_she_needs_and_what_is_next(page: Path) -> None:
    """It is short enough to be read at one time."""
    text = page.read_text()
    assert text.split("\n\n")[1].startswith("This page ")
    assert all(
        re.search(rf"(?:^|[.] ){word}", text, re.MULTILINE) for word in ("You need ", "Next: ")
    )
    assert len(text.split()) <= LONGEST


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One two.\n", []),
        (f"{'word ' * (SENTENCE + 1)}.\n", [(1, "a sentence of")]),
        (f"{'word ' * SENTENCE}. {'Word ' * SENTENCE}.\n", []),
        (f"```text\n{'word ' * 99}\n```\n", []),
        (f"| a | b |\n|---|---|\n| a | {'word ' * (CELL + 1)} |\n", [(3, "a cell of")]),
        ("\n- Whether it runs, it says.\n", [(2, "begins with its object")]),
        ("It is one, if it is left out.\n", [(1, "'if it is left out'")]),
        (f"A {'[word](page.md) ' * 10}and `{'code ' * 30}`.\n", []),
        (f"{'Word ' * (SENTENCE - 1)}`a b`, `c`.\n", []),
        ("The webhook refuses it.\n", [(1, "'refuses', use reject")]),
        ("`fairlead install` refuses it, and `refuses` is code.\n", []),
        ("A kind of node is wrong, and a still one is not.\n", [(1, "'kind of node', use cap")]),
        ("No replica serves it. A webhook replica serves it.\n", [(1, "'replica serves', use")]),
    ],
)
def test_what_breaks_a_rule_is_found_at_its_line(
    text: str, found: list[tuple[int, str]], tmp_path: Path
) -> None:
    """Code and the targets of links are no words of a sentence."""
    page = tmp_path / "page.md"
    page.write_text(text)
    said = [(fault.line, fault.text) for fault in faults(page)]
    assert len(said) == len(found)
    assert all(
        line == at and start in what for (line, what), (at, start) in zip(said, found, strict=True)
    )


def test_the_word_to_use_is_a_term_of_the_glossary() -> None:
    """So that a page can link it, and no second list of terms arises."""
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    terms = {term.strip("`") for term in re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)}
    unknown = [use for use in SYNONYMS.values() if not any(map(use.startswith, terms - {"term"}))]
    assert unknown == []
