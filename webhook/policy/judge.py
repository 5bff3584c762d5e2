"""One document's tree to its model, or to everything that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from webhook.placement.schema.base import UNKNOWN_FIELD, guess, shown
from webhook.policy import nodes
from webhook.policy.messages import NULL, sentence
from webhook.policy.model import KNOWN, PolicyDocument

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from webhook.policy.findings import Path

# What pydantic puts at the end of a path if it is the key of a mapping that is wrong.
_KEY: Final = "[key]"
_OWN_METADATA: Final = ("name", "labels", "annotations")


class Wrong(NamedTuple):
    """One error of a document: its path from the document's root, its place, its message."""

    path: Path
    place: nodes.Place
    message: str


def judge(node: nodes.Node) -> tuple[PolicyDocument | None, list[Wrong]]:
    """The document's model, if nothing is wrong with it, and what is wrong."""
    data = nodes.value(node)
    if not isinstance(data, dict):
        message = f"want a document with apiVersion and kind, one of {', '.join(KNOWN)}"
        return None, [Wrong((), node.place, message)]
    kind = data.get("kind")
    model = KNOWN.get(kind) if isinstance(kind, str) else None
    if model is None:
        return None, [Wrong(("kind",), nodes.locate(node, ("kind",)), _unknown_kind(data))]
    null = [
        path
        for path, child in nodes.walk(node)
        if isinstance(child, nodes.Scalar)
        and child.value is None
        and not _written_by_the_server(path)
    ]
    wrong = [Wrong(path, nodes.locate(node, path), NULL) for path in null]
    document = None
    try:
        document = model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        wrong += [_wrong(line, node) for line in lines if line["loc"] not in null]
    return (None if wrong else document), wrong


def identity(node: nodes.Node) -> tuple[str, str] | None:
    """Kind and name of a document, broken or not, as far as it says them."""
    kind, name = nodes.find(node, ("kind",)), nodes.find(node, ("metadata", "name"))
    if isinstance(kind, nodes.Scalar) and isinstance(name, nodes.Scalar):
        return kind.text, name.text
    return None


def _written_by_the_server(path: Path) -> bool:
    """Whether a path is the API server's to write, where nulls are usual."""
    return path[:1] == ("status",) or (
        path[:1] == ("metadata",) and len(path) > 1 and path[1] not in _OWN_METADATA
    )


def _unknown_kind(data: dict[str, Any]) -> str:
    kind, known = data.get("kind"), ", ".join(KNOWN)
    if kind is None:
        return f"is required: one of {known}"
    hint = guess(kind, tuple(KNOWN)) if isinstance(kind, str) else ""
    return f"{shown(kind)} is not one of {known}, the kinds of policy documents{hint}"


def _wrong(line: ErrorDetails, node: nodes.Node) -> Wrong:
    path = line["loc"]
    at_key = line["type"] == UNKNOWN_FIELD
    if path[-1:] == (_KEY,) and nodes.find(node, path) is None:
        path, at_key = path[:-1], True
    leaf = nodes.find(node, path)
    written = leaf.text if isinstance(leaf, nodes.Scalar) and not at_key else None
    return Wrong(path, nodes.locate(node, path, at_key=at_key), sentence(line, written))
