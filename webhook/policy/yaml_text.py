"""Parse YAML or JSON text to trees, with limits on depth and repetition."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from webhook.policy.yaml_tree import Disputed, Mapping, Node, Place, Scalar, Sequence, plain, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.policy.findings import Path

_UNPRINTABLE: Final = (
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# The same of ASCII. The other takes as long to compile as a hundred files take to be searched.
_UNPRINTABLE_ASCII: Final = re.compile("[^\t\n\r\x20-\x7e]")
# Messages of libyaml (scanner.c, parser.c), by their beginning, and their usual cause.
_MEANINGS: Final = {
    "mapping values are not allowed": "this line has another indentation than the lines "
    "above it, or a text with a colon needs quotes",
    "did not find expected key": "this line has another indentation than the lines above "
    "it, or a quote above it ends too early",
    "did not find expected '-' indicator": "an item of the list above it has another "
    "indentation, or its dash is missing",
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
# Policies nest about twelve deep; a deeper document is an attempt to exhaust the reader.
MAX_DEPTH: Final = 64
# How many values all aliases of a file may repeat: nested ones multiply.
MAX_REPEATED: Final = 20_000

_START: Final[Place] = (1, 1)
_JSON: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_MERGE: Final = "<<"
# Tags are rejected, but these mark the scalar as text: one error is enough.
_TEXT: Final = ("!", "tag:yaml.org,2002:str")
_QUOTED: Final = ('"', "'", "|", ">")


class Tree(NamedTuple):
    """One document: its root, and what is wrong with its text though it could be read."""

    root: Node
    faults: list[Fault]

    def located_faults(self) -> Iterator[tuple[Path, Fault]]:
        """Yield the faults of the text, each with its path; within a key there is no path."""
        paths: dict[int, Path] = {}
        if self.faults:
            for path, node in walk(self.root):
                paths.setdefault(id(node), path)
        for fault in self.faults:
            path = paths.get(id(fault.node), ())
            yield (path if fault.key is None else (*path, fault.key)), fault


def read_trees(content: bytes, most: int) -> Iterator[Tree]:
    """Yield every document of a file as `trees` does.

    Raises Unreadable, too, if the file has more than `most` bytes, or some that are not UTF-8.
    """
    if len(content) > most:
        raise Unreadable(_START, f"{len(content)} bytes are too much; the limit is {most}")
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before, byte = content[: error.start].decode("utf-8"), f"{content[error.start]:#04x}"
        raise Unreadable(
            character_place(before, len(before)),
            f"the byte {byte} is not UTF-8; save the file as UTF-8",
        ) from error
    yield from trees(text)


def trees(text: str) -> Iterator[Tree]:
    """Yield every document of the text in turn. Raises Unreadable where reading has to stop.

    Anchors, aliases and merge keys (`<<`) are followed, within limits. Tags are faults. JSON
    documents may follow each other without a separator, as kubectl reads them.
    """
    wrong = _UNPRINTABLE_ASCII.search(text) if text.isascii() else re.search(_UNPRINTABLE, text)
    if wrong:
        raise Unreadable(
            character_place(text, wrong.start()),
            f"the character {wrong.group()!a} is not allowed in YAML; remove it",
        )
    for part, origin in _split_json(text):
        if part.lstrip()[:1] in ("{", "["):
            # JSON writes a character beyond 16 bits as two escapes, YAML as one.
            part = _SURROGATES.sub(_joined, part)
        try:
            yield from _documents(part, origin)
        except yaml.MarkedYAMLError as error:
            raise _unreadable(part, error, origin) from None


def _split_json(text: str) -> list[tuple[str, Place]]:
    """Return each of the JSON objects that the text consists of, with its place.

    Any other text is one part. It is then read as YAML, which reports the place of an error.
    """
    documents: list[tuple[str, Place]] = []
    end, line, newline = 0, 1, -1
    while (start := _at_value(text, end)) < len(text):
        if text[start] != "{":
            return [(text, _START)]
        line += text.count("\n", end, start)
        newline = max(newline, text.rfind("\n", end, start))
        place = (line, start - newline)
        try:
            _, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            return [(text, _START)]
        documents.append((text[start:end], place))
        line += text.count("\n", start, end)
        newline = max(newline, text.rfind("\n", start, end))
    return documents if len(documents) > 1 else [(text, _START)]


def _at_value(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def character_place(text: str, index: int) -> tuple[int, int]:
    """Line and column, from 1, of a character of the text."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _joined(pair: re.Match[str]) -> str:
    high, low = (int(half, 16) & 0x3FF for half in pair.groups())
    return f"\\U{0x10000 + (high << 10) + low:08x}"


def _unreadable(text: str, error: yaml.MarkedYAMLError, origin: Place) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.split("\n")
    start = lines[line - 1] if line <= len(lines) else ""
    indentation = start[: len(start) - len(start.lstrip())]
    if "\t" in indentation and column <= len(indentation) + 1:
        at = indentation.index("\t") + 1
        return Unreadable(
            _moved((line, at), origin), "YAML does not allow tabs for indentation; use spaces"
        )
    problem = error.problem or "it breaks off"
    context = f" {error.context}" if error.context else ""
    meaning = next((text for begin, text in _MEANINGS.items() if problem.startswith(begin)), "")
    usually = f"; usually: {meaning}" if meaning else ""
    return Unreadable(_moved((line, column), origin), f"not YAML: {problem}{context}{usually}")


def _documents(text: str, origin: Place) -> Iterator[Tree]:
    composer = Composer(origin)
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        match event:
            case yaml.DocumentStartEvent():
                composer = Composer(origin, composer.repeated)
            case yaml.ScalarEvent():
                composer.scalar(event)
            case yaml.AliasEvent():
                composer.alias(event)
            case yaml.SequenceStartEvent():
                composer.open(event, Sequence(place_of(event, origin)))
            case yaml.MappingStartEvent():
                composer.open(event, Mapping(place_of(event, origin)))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                composer.close()
            case yaml.DocumentEndEvent() if composer.root is not None:
                yield Tree(composer.root, composer.faults)


def place_of(event: yaml.Event, origin: Place) -> Place:
    """Return where an event begins, in the text whose part begins at `origin`."""
    mark = event.start_mark
    return _moved((mark.line + 1, mark.column + 1) if mark else _START, origin)


def _moved(place: Place, origin: Place) -> Place:
    line, column = place
    return origin[0] + line - 1, column + (origin[1] - 1 if line == 1 else 0)


class Fault(NamedTuple):
    """Something wrong with the text itself, after which reading goes on.

    It concerns the node `node`, or of that mapping the key `key`.
    """

    place: Place
    message: str
    node: Node
    key: str | None = None


class Unreadable(Exception):
    """The rest of the text cannot be read, because of the error at `place`."""

    def __init__(self, place: Place, message: str) -> None:
        self.place = place
        super().__init__(message)


@dataclass(slots=True)
class _Open:
    """A container whose end is not read yet; of a mapping, keys and values take turns."""

    node: Sequence | Mapping
    children: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Composer:
    """Puts one document together, event by event, without recursion.

    `origin` is the place of the text within its file. `root` is set once the document's end is
    read. `faults` are errors after which reading could go on. `repeated` counts the values that
    aliases repeat, for a whole file: hand it on from one document to the next.
    """

    origin: Place
    repeated: int = 0
    root: Node | None = None
    faults: list[Fault] = field(default_factory=list)
    _stack: list[_Open] = field(default_factory=list)
    _anchors: dict[str, Node] = field(default_factory=dict)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        """Add a leaf."""
        text = event.value
        quoted = event.style in _QUOTED or event.tag in _TEXT
        node = Scalar(place_of(event, self.origin), text if quoted else plain(text), text, quoted)
        self._meet(node, event)
        self._add(node)

    def open(self, event: yaml.CollectionStartEvent, node: Sequence | Mapping) -> None:
        """Begin a list or mapping. Raises Unreadable if it is too deep."""
        self._check_depth(0, node.place)
        self._meet(node, event)
        self._stack.append(_Open(node))

    def close(self) -> None:
        """End the innermost list or mapping."""
        opened = self._stack.pop()
        node, children = opened.node, opened.children
        node.size += sum(child.size for child in children)
        node.height = 1 + max((child.height for child in children), default=0)
        if isinstance(node, Sequence):
            node.items = children
        else:
            self._fill(node, children)
        self._add(node)

    def alias(self, event: yaml.AliasEvent) -> None:
        """Add a node once more. Raises Unreadable if there is none, or if it grows too much."""
        place = place_of(event, self.origin)
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise Unreadable(place, f"there is no anchor &{event.anchor} above this alias")
        if any(opened.node is node for opened in self._stack):
            raise Unreadable(place, f"*{event.anchor} refers to a value that contains it")
        self.repeated += node.size
        if self.repeated > MAX_REPEATED:
            raise Unreadable(place, f"aliases repeat more than {MAX_REPEATED} values; write fewer")
        self._check_depth(node.height, place)
        self._add(node)

    def _check_depth(self, height: int, place: Place) -> None:
        if len(self._stack) + height >= MAX_DEPTH:
            raise Unreadable(place, f"nested more than {MAX_DEPTH} levels deep")

    def _meet(self, node: Node, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        """Read what every new node may have: a tag, which is refused, and an anchor."""
        if event.tag is not None:
            message = f"remove the tag {event.tag}; put text in quotes"
            self.faults.append(Fault(node.place, message, node))
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _add(self, node: Node) -> None:
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self.root = node

    def _fill(self, mapping: Mapping, children: list[Node]) -> None:
        merged: list[Node] = []
        for key, child in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, Scalar):
                message = "a key must be text, not a list or a mapping"
                self.faults.append(Fault(key.place, message, mapping))
            elif key.text == _MERGE and not key.quoted:
                merged.append(child)
            elif key.text in mapping.entries:
                first = mapping.entries[key.text][0].place[0]
                message = f"the key is in line {first} already; remove one of the two"
                self.faults.append(Fault(key.place, message, mapping, key.text))
            else:
                if not isinstance(key.value, str):
                    self.faults.append(Fault(key.place, _not_text(key), mapping, key.text))
                mapping.entries[key.text] = (key, child)
        for child in merged:
            self._merge(mapping, child)

    def _merge(self, mapping: Mapping, source: Node) -> None:
        """Apply the merge key of YAML 1.1: add the keys that the mapping does not have."""
        sources = source.items if isinstance(source, Sequence) else [source]
        for element in sources:
            if isinstance(element, Mapping):
                for key, entry in element.entries.items():
                    mapping.entries.setdefault(key, entry)
            else:
                message = "<< takes a mapping, or a list of mappings"
                self.faults.append(Fault(element.place, message, mapping))


def _not_text(key: Scalar) -> str:
    if key.value is None:
        return f"a key must be text; this one is null. Quote it: {key.text!r}"
    reading = (
        f"can be read as {key.value.meaning}" if isinstance(key.value, Disputed) else "is not text"
    )
    return f"the key {key.text} {reading}; quote it: {key.text!r}"
