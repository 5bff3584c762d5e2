"""Files to Polyaxonfiles: every document of every file, told apart by its schema."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.policy import nodes
from webhook.policy.composer import Unreadable
from webhook.policy.yaml_text import character_place, trees
from webhook.run.polyaxon.item import Item, Origin, read
from webhook.run.polyaxon.old_schema.document import KINDS, REFUSED
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.policy.composer import Fault
    from webhook.policy.findings import Path
    from webhook.policy.yaml_text import Tree
    from webhook.run.polyaxon.notes import Notes

# Nobody writes more by hand.
MAX_BYTES: Final = 2**20
OPERATION: Final = "operation"
COMPONENT: Final = "component"
# Fields that tell an operation that does not say its kind.
_OF_OPERATIONS: Final = ("component", "hubRef", "pathRef", "urlRef", "dagRef", "runPatch")
_OPERATIONS: Final = "operations"
_SEVERAL: Final = (
    "holds several operations, and a Run is made of one; give each a file of its own, of kind "
    "operation"
)
_VERSION: Final = "want 1, the version of the old schema; a component or an operation has 1.1"


@dataclass
class Documents:
    """Each document by what it is."""

    old: list[Item] = field(default_factory=list)
    operations: list[Item] = field(default_factory=list)
    components: list[Item] = field(default_factory=list)
    broken: bool = False


def documents(files: Mapping[str, bytes], notes: Notes) -> Documents:
    """All of them, in the order of files and documents; what is wrong with the text is noted."""
    found = Documents()
    for file, content in files.items():
        for item in _read_file(file, content, notes):
            _file(item, found, notes)
    found.broken = bool(notes.errors)
    return found


def _read_file(file: str, content: bytes, notes: Notes) -> list[Item]:
    def fault(place: nodes.Place, message: str, path: Path = ()) -> None:
        notes.error(Origin(file, place, place, path), message)

    if len(content) > MAX_BYTES:
        fault((1, 1), f"{len(content)} bytes are too much; the limit is {MAX_BYTES}")
        return []
    content = content.removeprefix(codecs.BOM_UTF8)
    result = []
    try:
        for tree in trees(content.decode("utf-8")):
            for path, each in _with_paths(tree):
                fault(each.place, each.message, path)
            if not (isinstance(tree.root, nodes.Scalar) and tree.root.value is None):
                result.append(read(tree.root, file))
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        place = character_place(before, len(before))
        byte = f"{content[error.start]:#04x}"
        fault(place, f"the byte {byte} is not UTF-8; save the file as UTF-8")
    except Unreadable as error:
        fault(error.place, str(error))
    return result


def _with_paths(tree: Tree) -> list[tuple[Path, Fault]]:
    paths: dict[int, Path] = {}
    if tree.faults:
        for path, node in nodes.walk(tree.root):
            paths.setdefault(id(node), path)
    return [
        (paths.get(id(each.of), ()) + (() if each.key is None else (each.key,)), each)
        for each in tree.faults
    ]


def _file(item: Item, found: Documents, notes: Notes) -> None:
    """One document where it belongs, or an error."""
    if not isinstance(item.value, dict):
        notes.error(item, "want a Polyaxonfile: a mapping with version and kind")
        return
    kind_of = item.entries.get("kind")
    kind = kind_of.written if kind_of is not None and kind_of.value is not None else _guessed(item)
    if kind == OPERATION:
        found.operations.append(item)
    elif kind == COMPONENT:
        found.components.append(item)
    elif kind in KINDS:
        version = item.entries.get("version")
        if version is not None and version.written not in ("1", "1.0"):
            notes.error(version, f"{_VERSION}, not {shown(version.written)}")
        found.old.append(item)
    elif kind in REFUSED and kind_of is not None:
        notes.error(kind_of, f"is {kind}: {REFUSED[kind]}")
    elif isinstance(item.entries.get(_OPERATIONS, item).value, tuple):
        notes.error(item.entries[_OPERATIONS], _SEVERAL, key=True)
    else:
        known = (*KINDS, COMPONENT, OPERATION)
        hint = guess(kind, known)
        message = (
            f"{shown(kind)} is not one of {', '.join(known)}{hint}"
            if kind
            else (f"is required: one of {', '.join(known)}")
        )
        notes.error(kind_of or item, message, below=() if kind_of else ("kind",))


def _guessed(item: Item) -> str:
    """The kind of a document that does not say it, as Polyaxon allows since 2."""
    version = item.entries.get("version")
    if version is not None and version.written == "1":
        return ""
    if any(name in item.entries for name in _OF_OPERATIONS):
        return OPERATION
    return COMPONENT if "run" in item.entries else ""
