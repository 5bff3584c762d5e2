"""Events of a YAML parser to a tree of nodes, with limits on depth and on repetition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.policy.nodes import Mapping, Node, Place, Scalar, Sequence
from webhook.policy.scalars import Disputed, plain

if TYPE_CHECKING:
    import yaml

# Policies nest about twelve deep; whoever goes further wants to exhaust the reader.
MAX_DEPTH: Final = 64
# How many values all aliases of a file may repeat: nested ones multiply.
MAX_REPEATED: Final = 20_000

_MERGE: Final = "<<"
# Tags are refused, but these say that the scalar is text: one error is enough.
_TEXT: Final = ("!", "tag:yaml.org,2002:str")
_QUOTED: Final = ('"', "'", "|", ">")


def place_of(event: yaml.Event) -> Place:
    """Where an event begins."""
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class Fault(NamedTuple):
    """Something wrong with the text itself, after which reading goes on.

    It concerns the node `of`, or of that mapping the key `key`.
    """

    place: Place
    message: str
    of: Node
    key: str | None = None


class Unreadable(Exception):
    """The rest of the text cannot be read, because of what stands at `place`."""

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

    `root` is set once the document's end is read. `faults` are errors after which reading could
    go on. `repeated` counts the values that aliases repeat, for a whole file: hand it on from
    one document to the next.
    """

    repeated: int = 0
    root: Node | None = None
    faults: list[Fault] = field(default_factory=list)
    _stack: list[_Open] = field(default_factory=list)
    _anchors: dict[str, Node] = field(default_factory=dict)

    def scalar(self, event: yaml.ScalarEvent) -> None:
        """A leaf."""
        text = event.value
        quoted = event.style in _QUOTED or event.tag in _TEXT
        node = Scalar(place_of(event), text if quoted else plain(text), text, quoted)
        self._meet(node, event)
        self._add(node)

    def open(self, event: yaml.CollectionStartEvent, node: Sequence | Mapping) -> None:
        """The start of a list or mapping. Raises Unreadable if it is too deep."""
        self._check_depth(0, node.place)
        self._meet(node, event)
        self._stack.append(_Open(node))

    def close(self) -> None:
        """The end of the innermost list or mapping."""
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
        """A node once more. Raises Unreadable if there is none, or if it grows too much."""
        place = place_of(event)
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise Unreadable(place, f"there is no anchor &{event.anchor} above this alias")
        if any(opened.node is node for opened in self._stack):
            raise Unreadable(place, f"*{event.anchor} stands inside of what it repeats")
        self.repeated += node.size
        if self.repeated > MAX_REPEATED:
            raise Unreadable(place, f"aliases repeat more than {MAX_REPEATED} values; write fewer")
        self._check_depth(node.height, place)
        self._add(node)

    def _check_depth(self, height: int, place: Place) -> None:
        if len(self._stack) + height >= MAX_DEPTH:
            raise Unreadable(place, f"nested more than {MAX_DEPTH} levels deep")

    def _meet(self, node: Node, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        """What every new node may have: a tag, which is refused, and an anchor."""
        if event.tag is not None:
            message = f"remove the tag {event.tag}; what is to be text stands in quotes"
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
        """The merge key of YAML 1.1: what the mapping does not say itself is taken over."""
        sources = source.items if isinstance(source, Sequence) else [source]
        for each in sources:
            if isinstance(each, Mapping):
                for key, entry in each.entries.items():
                    mapping.entries.setdefault(key, entry)
            else:
                message = "<< takes a mapping, or a list of mappings"
                self.faults.append(Fault(each.place, message, mapping))


def _not_text(key: Scalar) -> str:
    if key.value is None:
        return f"a key must be text; this one is null. Quote it: {key.text!r}"
    seen = (
        f"can be read as {key.value.meaning}" if isinstance(key.value, Disputed) else "is not text"
    )
    return f"the key {key.text} {seen}; quote it: {key.text!r}"
