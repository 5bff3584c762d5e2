"""YAML or JSON text to the documents in it, as trees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from webhook.policy.composer import Composer, Fault, Unreadable, place_of
from webhook.policy.nodes import Mapping, Node, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# What libyaml says (scanner.c, parser.c), by how it begins, and what it usually means.
_MEANINGS: Final = {
    "mapping values are not allowed": "this line is indented otherwise than those above it, or a "
    "text with a colon in it wants quotes",
    "did not find expected key": "this line is indented otherwise than those above it, or a quote "
    "above it ends too early",
    "did not find expected '-' indicator": "an item of the list above it is indented otherwise, or "
    "its dash is missing",
    "could not find expected ':'": "a key without a colon and a space behind it, or a text that is "
    "indented less than where it began",
    "block sequence entries are not allowed": "a list begins on a line of its own, below its key",
    "found character that cannot start": "a text that begins with @, ` or % wants quotes",
    "did not find expected alphabetic or numeric": "a text that begins with * or & wants quotes",
    "did not find expected node content": "a value is missing, or a bracket is not closed",
    "did not find expected ','": "a bracket is not closed, or a comma is missing",
    "found unexpected end of stream": "a quote is not closed",
    "found unexpected document indicator": "a quote above it is not closed",
    "found unknown escape character": "between double quotes a backslash is written twice; or take "
    "single quotes",
}
_SURROGATES: Final = re.compile(r"\\u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})")


class Tree(NamedTuple):
    """One document: its root, and what is wrong with its text though it could be read."""

    root: Node
    faults: list[Fault]


def trees(text: str) -> Iterator[Tree]:
    """Every document of the text in turn. Raises Unreadable where reading has to stop.

    Anchors, aliases and merge keys (`<<`) are followed, within limits. Tags are faults.
    """
    if wrong := _UNPRINTABLE.search(text):
        raise Unreadable(
            character_place(text, wrong.start()),
            f"the character {wrong.group()!a} may not stand in YAML; remove it",
        )
    if text.lstrip()[:1] in ("{", "["):
        # JSON writes a character beyond 16 bits as two escapes, YAML as one.
        text = _SURROGATES.sub(_joined, text)
    try:
        yield from _documents(text)
    except yaml.MarkedYAMLError as error:
        raise _unreadable(text, error) from None


def character_place(text: str, index: int) -> tuple[int, int]:
    """Line and column, from 1, of a character of the text."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _joined(pair: re.Match[str]) -> str:
    high, low = (int(half, 16) & 0x3FF for half in pair.groups())
    return f"\\U{0x10000 + (high << 10) + low:08x}"


def _unreadable(text: str, error: yaml.MarkedYAMLError) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.split("\n")
    start = lines[line - 1] if line <= len(lines) else ""
    indentation = start[: len(start) - len(start.lstrip())]
    if "\t" in indentation and column <= len(indentation) + 1:
        at = indentation.index("\t") + 1
        return Unreadable((line, at), "YAML takes no tab for indentation; use spaces")
    problem = error.problem or "it breaks off"
    context = f" {error.context}" if error.context else ""
    meaning = next((text for begin, text in _MEANINGS.items() if problem.startswith(begin)), "")
    usually = f"; usually: {meaning}" if meaning else ""
    return Unreadable((line, column), f"not YAML: {problem}{context}{usually}")


def _documents(text: str) -> Iterator[Tree]:
    composer = Composer()
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        match event:
            case yaml.DocumentStartEvent():
                composer = Composer(repeated=composer.repeated)
            case yaml.ScalarEvent():
                composer.scalar(event)
            case yaml.AliasEvent():
                composer.alias(event)
            case yaml.SequenceStartEvent():
                composer.open(event, Sequence(place_of(event)))
            case yaml.MappingStartEvent():
                composer.open(event, Mapping(place_of(event)))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                composer.close()
            case yaml.DocumentEndEvent() if composer.root is not None:
                yield Tree(composer.root, composer.faults)
