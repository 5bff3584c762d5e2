"""Test files to documents: every PolicyTest in them, or everything that is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from webhook.errors import InvalidDocuments, InvalidPod
from webhook.placement import pod as pods_of
from webhook.placement.schema.base import UNKNOWN_FIELD
from webhook.policy import nodes
from webhook.policy.composer import Unreadable
from webhook.policy.findings import Finding, path_text
from webhook.policy.messages import NULL, sentence
from webhook.policy.scalars import Disputed
from webhook.policy.yaml_text import trees
from webhook.policy_tests import pods
from webhook.policy_tests.model import PolicyTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from webhook.policy.findings import Path
    from webhook.policy.yaml_text import Tree


@dataclass(frozen=True, slots=True)
class Document:
    """One PolicyTest, and where everything in it stands."""

    file: str
    model: PolicyTest
    _node: nodes.Node = field(repr=False, compare=False)

    def line(self, at: int) -> int:
        """The line, from 1, at which the test at this position begins."""
        return nodes.locate(self._node, ("tests", at))[0]

    def finding(self, path: Path, message: str) -> Finding:
        """An error of this document, at the path's place."""
        return Finding(self.file, *nodes.locate(self._node, path), path_text(path), message)


def parse(file: str, content: bytes) -> tuple[Document, ...]:
    """The documents of one file, in their order; empty ones are skipped.

    Raises InvalidDocuments with every finding.
    """
    documents: list[Document] = []
    findings: list[Finding] = []
    try:
        for tree in trees(content.decode("utf-8-sig")):
            wrong = [
                Finding(file, *place, path_text(path), text)
                for path, place, text in _text_faults(tree)
            ]
            document, errors = _judged(file, tree.root)
            findings += [*wrong, *errors]
            if document is not None:
                documents.append(document)
    except UnicodeDecodeError:
        findings.append(Finding(file, 1, 1, "", "is not UTF-8; save the file as UTF-8"))
    except Unreadable as error:
        findings.append(Finding(file, *error.place, "", str(error)))
    if findings:
        raise InvalidDocuments(sorted(set(findings)))
    return tuple(documents)


def _text_faults(tree: Tree) -> Iterator[tuple[Path, nodes.Place, str]]:
    """What is wrong with the text itself: keys that come twice, tags, and the like."""
    paths = {id(node): path for path, node in nodes.walk(tree.root)} if tree.faults else {}
    for fault in tree.faults:
        path = paths.get(id(fault.of), ())
        yield (path if fault.key is None else (*path, fault.key)), fault.place, fault.message


def _judged(file: str, root: nodes.Node) -> tuple[Document | None, list[Finding]]:
    data = nodes.value(root)
    if data is None:
        return None, []
    if not isinstance(data, dict) or data.get("kind") != "PolicyTest":
        seen = data.get("kind") if isinstance(data, dict) else None
        what = f"want a document of kind PolicyTest{f', not {seen}' if seen else ''}"
        return None, [Finding(file, *nodes.locate(root, ("kind",)), "kind", what)]
    findings = list(_scalars(file, root))
    try:
        document = Document(
            file, PolicyTest.model_validate(data, by_alias=True, by_name=False), root
        )
    except ValidationError as error:
        known = {finding.path for finding in findings}
        lines = (_finding(file, line, root) for line in error.errors(include_url=False))
        return None, [*findings, *(line for line in lines if line.path not in known)]
    findings += _misshapen(document)
    return (None if findings else document), findings


def _scalars(file: str, root: nodes.Node) -> Iterator[Finding]:
    """Scalars that no field takes: nulls outside of pods, and what readers of YAML dispute."""
    for path, node in nodes.walk(root):
        if not isinstance(node, nodes.Scalar):
            continue
        in_pod = path[:1] == ("tests",) and path[2:3] == ("pod",)
        if node.value is None and not in_pod:
            yield Finding(file, *nodes.locate(root, path), path_text(path), NULL)
        elif isinstance(node.value, Disputed):
            meaning = node.value.meaning
            what = f"{node.text} can be read as text or as {meaning}; quote it, or write it plainly"
            yield Finding(file, *node.place, path_text(path), what)


def _finding(file: str, line: ErrorDetails, root: nodes.Node) -> Finding:
    """One error of the model, at its place and in our own words."""
    path, at_key = line["loc"], line["type"] == UNKNOWN_FIELD
    if path[-1:] == ("[key]",) and nodes.find(root, path) is None:
        path, at_key = path[:-1], True
    leaf = nodes.find(root, path)
    written = leaf.text if isinstance(leaf, nodes.Scalar) and not at_key else None
    place = nodes.locate(root, path, at_key=at_key)
    return Finding(file, *place, path_text(path), sentence(line, written))


def _misshapen(document: Document) -> Iterator[Finding]:
    """Pods whose placement fields have no pod's shape."""
    for at, case in enumerate(document.model.tests):
        try:
            pods_of.read(pods.whole(case.pod))
        except InvalidPod as error:
            path: tuple[Any, ...] = ("tests", at, "pod", *pods.written_at(error.field, case.pod))
            yield document.finding(path, str(error).removeprefix(f"{error.field}: "))
