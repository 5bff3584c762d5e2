"""Kubernetes objects from files, folders and standard input, each with its place."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.errors import UnreadableInput
from webhook.policy import nodes
from webhook.policy.composer import Unreadable
from webhook.policy.scalars import Disputed
from webhook.policy.yaml_text import trees
from webhook.workloads.object import Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


_STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
# JSON this long was written by a program, say by kubectl of a thousand nodes: nobody looks for a
# line in it, and without lines it is read in a fiftieth of the time.
_LONG: Final = 2**21
_YAML_1_1_TRUE: Final = ("y", "yes", "on")


def read_objects(paths: Iterable[Path], passed: list[str] | None = None) -> list[Object]:
    """Every object of the files, in order; the items of a List are objects of their own.

    `-` is standard input. Folders are read with all folders in them, files that end in .yaml, .yml
    or .json, by name. Raises UnreadableInput with every problem, each with its place; with `passed`
    they are put there instead, and everything else is read.
    """
    found: list[Object] = []
    problems: list[str] = [] if passed is None else passed
    for path in paths:
        for file in _files(path):
            try:
                content = _content(file)
            except OSError as error:
                problems.append(f"{file}: {error.strerror}")
            else:
                found += _objects(_shown(file), content, problems)
    if problems and passed is None:
        raise UnreadableInput(problems)
    return found


def counted(objects: Sequence[Object]) -> str:
    """How many there are of which kind: 2 ConfigMaps, 1 Service."""
    counts = Counter(each.kind for each in objects)
    return ", ".join(f"{n} {kind if n == 1 else _plural(kind)}" for kind, n in counts.items())


def _plural(kind: str) -> str:
    # As Kubernetes makes resources of kinds (apimachinery, meta.UnsafeGuessKindToResource).
    if kind.endswith("s"):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _files(path: Path) -> list[Path]:
    if str(path) == _STDIN or not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def _content(file: Path) -> bytes:
    return sys.stdin.buffer.read() if str(file) == _STDIN else file.read_bytes()


def _shown(file: Path) -> str:
    return "<stdin>" if str(file) == _STDIN else str(file)


def _objects(file: str, content: bytes, problems: list[str]) -> Iterator[Object]:
    if len(content) > _LONG and content.lstrip()[:1] == b"{":
        try:
            yield from _expanded(file, orjson.loads(content), None, problems)
        except orjson.JSONDecodeError:
            pass  # read as YAML its error has a place
        else:
            return
    try:
        for tree in trees(content.decode("utf-8-sig")):
            if tree.faults:
                problems += [_problem(file, fault.place, fault.message) for fault in tree.faults]
            elif (value := _plain(tree.root)) is not None:
                yield from _expanded(file, value, tree.root, problems)
    except UnicodeDecodeError:
        problems.append(f"{file}: this is not UTF-8; save the file as UTF-8")
    except Unreadable as error:
        problems.append(_problem(file, error.place, str(error)))


def _problem(file: str, place: nodes.Place, message: str) -> str:
    return f"{file}:{place[0]}:{place[1]}: {message}"


def _expanded(
    file: str, value: Any, node: nodes.Node | None, problems: list[str], kind: str = ""
) -> Iterator[Object]:
    """The object, or if it is a List, its items, which take its kind if they have none."""
    if isinstance(value, dict) and kind:
        value = {"kind": kind, **value}
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        place = Object(file, {}, node).place(("kind",))
        problems.append(f"{place}: want a Kubernetes object, with apiVersion and kind")
        return
    items = value.get("items")
    if not (value["kind"].endswith("List") and isinstance(items, list)):
        yield Object(file, value, node)
        return
    for at, item in enumerate(items):
        below = None if node is None else nodes.find(node, ("items", at))
        yield from _expanded(file, item, below, problems, value["kind"].removesuffix("List"))


def _plain(node: nodes.Node) -> Any:
    """The node as JSON has it, with what readers of YAML dispute read as kubectl reads it."""
    match node:
        case nodes.Scalar():
            return _settled(node.value) if isinstance(node.value, Disputed) else node.value
        case nodes.Sequence():
            return [_plain(item) for item in node.items]
        case nodes.Mapping():
            return {key: _plain(child) for key, (_, child) in node.entries.items()}


def _settled(disputed: Disputed) -> bool | int | float | str:
    """By YAML 1.1, as sigs.k8s.io/yaml has it."""
    if disputed.meaning == "a boolean":
        return disputed.text.lower() in _YAML_1_1_TRUE
    text = disputed.text.replace("_", "")
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    for read in (lambda: int(text, 8 if octal else 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    return disputed.text
