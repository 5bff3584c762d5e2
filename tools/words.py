"""`python -m tools.words [PAGE…]`: where pages break the rules for words, as PAGE:LINE: what.

The rules: a sentence has one idea, so at most SENTENCE words; a cell of a table has one fact, so at
most CELL; a sentence begins with who acts; a thing has one name, that of docs/reference/glossary.md
(SYNONYMS).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parents[1]
SENTENCE: Final = 25
CELL: Final = 30
# A decision is read once, by who changes what it is about.
OF_DECISIONS: Final = 35
_DECISIONS: Final = ROOT / "docs" / "decisions"
_OPENINGS: Final = re.compile(r"(Whether|Of|Always|Nothing is|What [^.?]* is)\b")
_PHRASES: Final = re.compile(r"\b(if it is left out|so many|so long)\b", re.IGNORECASE)
# What pages called a thing, or used for another thing than the glossary does -> the term of
# docs/reference/glossary.md, and what else to write. Code is left out, but for a command that
# refuses: it declines to act.
SYNONYMS: Final = {
    r"(?<!`code` )refus\w+|den(?:y|ies|ied|ying)": "reject",
    r"set(?:s|ting)? aside|excepted|passes the policy": "exempt",
    r"definitions?": "CRD",
    r"nodes? (?:is|are|was|were) (?:gone|away|interrupted|taken away)": "lost node",
    r"ill": "unhealthy node",
    r"nodes? (?:is|are) (?:quiet|not reporting)": "silent node",
    r"(?:created|runs?|started) once more|anew|replicas? (?:starts?|runs?) again": (
        "restart, or replace if it is not counted"
    ),
    r"credit(?:s|ed)?|took effect|touch(?:es|ed)?": "applies, or sets a field",
    r"policies (?:are|is) live": "in force",
    r"whoever|creators?": "author",
    r"operators? of Fairlead|installers?": "admin",
    r"backends?": "engine",
    r"class(?:es)? of nodes?|kinds? of nodes?": "capacity class",
    r"parts? of a run|portions?": "share of a role, or belongs to a run",
    r"(?<!webhook )replicas? (?:that )?(?:serves?|answers?|decides?)": "replica of the webhook",
    r"(?:decision|policy|placement) engine": "engine for what executes a Run, else webhook",
    r"giv(?:e|es|ing|en) up (?:a|the) (?:node|pod)s?": "fallback for a class, else lost",
    r"shapes? of (?:a|the) pod": "capacity class for what has shapes",
    r"lost (?:settings?|hours)": "lost node, else no effect, or repeated",
    r"wish(?:es)?": "setting",
}
# Words of no term, by plain English (style) -> what to write.
PLAIN: Final = {
    r"stands? back": "yields",
    r"told|heard": "reported, or warned",
    r"everybody's|nobody's": "all, or none",
    r"but for|as ever|hardly|merely": "except, or a sentence without it",
}
_SYNONYMS: Final = [
    (re.compile(rf"(?<![\w`])(?:{words})\b", re.IGNORECASE), use)
    for words, use in (SYNONYMS | PLAIN).items()
]
# Names that are listed count as one: a reader looks one up.
_CODE: Final = re.compile(r"(?:``.+?``|`[^`]*`)(?:, (?:``.+?``|`[^`]*`))*")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCES: Final = re.compile(r"(?<=[.?!:;])\s+(?=[A-Z`*\[(\"])")
_WORD: Final = re.compile(r"[\w`][\w`'’./:=-]*")


class Fault(NamedTuple):
    line: int
    text: str


def faults(page: Path) -> Iterator[Fault]:
    """Yield what breaks a rule."""
    most = OF_DECISIONS if page.parent == _DECISIONS else SENTENCE
    for line, text, is_cell in _texts(page.read_text()):
        if is_cell and _count(text) > CELL:
            yield Fault(line, f"a cell of {_count(text)} words: {_start(text)}")
        for sentence in _SENTENCES.split(text):
            if not is_cell and _count(sentence) > most:
                yield Fault(line, f"a sentence of {_count(sentence)} words: {_start(sentence)}")
            if _OPENINGS.match(sentence):
                yield Fault(line, f"begins with its object: {_start(sentence)}")
            if match := _PHRASES.search(sentence):
                yield Fault(line, f"{match[0]!r}: {_start(sentence)}")
            for words, use in _SYNONYMS:
                if match := words.search(sentence):
                    yield Fault(line, f"{match[0]!r}, use {use}: {_start(sentence)}")


def _texts(page: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each paragraph, item of a list and cell of a table: its line, text, whether a cell."""
    is_code = False
    for number, raw in enumerate(page.splitlines(), 1):
        line = raw.strip()
        if line.startswith("```"):
            is_code = not is_code
        elif is_code or not line or line.startswith(("#", "<", "![")):
            continue
        elif line.startswith("|"):
            if not re.fullmatch(r"[|:\s-]+", line):
                cells = re.split(r"(?<!\\)\|", line.strip("|"))
                yield from ((number, _plain(cell), True) for cell in cells)
        else:
            yield number, _plain(re.sub(r"^([-*>]|\d+\.)\s+", "", line)), False


def _plain(text: str) -> str:
    """Return the text with code as one word, and links as their words."""
    return _CODE.sub("`code`", _LINK.sub(r"\1", text)).replace("**", "").strip()


def _count(text: str) -> int:
    return len(_WORD.findall(text))


def _start(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def main(pages: Sequence[Path]) -> int:
    page_faults = [(page, fault) for page in pages for fault in faults(page)]
    for page, fault in page_faults:
        print(f"{page}:{fault.line}: {fault.text}")
    return int(bool(page_faults))


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
