"""Read files to documents of known kinds, and report every error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Self, TypeVar

from webhook.errors import InvalidDocuments
from webhook.policy import yaml_tree
from webhook.policy.document_parser import Forms, M, identity, judge
from webhook.policy.findings import Finding, Kind, Path, Severity, path_text
from webhook.policy.yaml_text import Tree, Unreadable, read_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

# A ConfigMap holds 1 MiB, and a list from kubectl several times that.
MAX_BYTES: Final = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Document(Generic[M]):
    """One valid document: its model, and the places of its fields.

    left_out: how many items of the list `Forms.apart` have errors, and are not in the model
    """

    file: str
    model: M
    _node: yaml_tree.Node = field(repr=False, compare=False)
    _prefix: Path = ()
    left_out: int = 0
    _derived: dict[Callable[[Any], Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def derive(self, compute: Callable[[Self], T]) -> T:
        """Return what `compute` returns for this document; it is called once.

        A set is compiled after each write, and most of its documents are those of the set before.
        """
        if compute not in self._derived:
            self._derived[compute] = compute(self)
        value: T = self._derived[compute]
        return value

    def locate(self, path: Path, *, at_key: bool = False) -> yaml_tree.Place:
        """Line and column, from 1, of a path such as ("spec", "overrides", "capacity", 0).

        Names are the outer ones. For a missing field, the place of the nearest parent. `at_key`:
        the place of the field's name instead of its value.
        """
        return yaml_tree.locate(self._node, path, at_key=at_key)

    def finding(
        self,
        path: Path,
        message: str,
        severity: Severity = "error",
        *,
        about: str = "",
        at_key: bool = False,
        kind: Kind = Kind.DOCUMENT,
    ) -> Finding:
        """Return a finding about this document, at the path's place."""
        place = self.locate(path, at_key=at_key)
        text = path_text((*self._prefix, *path))
        return Finding(self.file, *place, text, message, severity, about=about, kind=kind)


class Foreign(NamedTuple):
    """A document of another program, which was skipped."""

    file: str
    line: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Documents(Generic[M]):
    """What was read: the documents without errors, and all findings, both in order of place.

    `broken` has kind and name of documents with errors, so that a reference to one is not reported
    as unknown.
    """

    documents: tuple[Document[M], ...]
    findings: tuple[Finding, ...]
    broken: frozenset[tuple[str, str]] = frozenset()
    foreign: tuple[Foreign, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    def sound(self) -> tuple[Document[M], ...]:
        """Return the documents. Raises InvalidDocuments, with the errors, if there are any."""
        if self.errors:
            raise InvalidDocuments(self.errors)
        return self.documents


def read_files(files: Mapping[str, bytes], forms: Forms[M]) -> Documents[M]:
    """Read files, YAML or JSON, by name; never raises, whatever is in them.

    Files are read in the order of their names. Documents that are empty are skipped, the items of
    a List are documents of their own.
    """
    reader = _Reader(forms)
    for name in sorted(files):
        reader.read_file(name, files[name])
    return reader.result()


def read_one(place: str, root: yaml_tree.Node, forms: Forms[M]) -> Documents[M]:
    """Read the one document with the tree `root`; never raises.

    `place` is used as the file's name in findings.
    """
    reader = _Reader(forms)
    reader.read_document(place, root, (), sound=True)
    return reader.result()


@dataclass(slots=True)
class _Reader(Generic[M]):
    forms: Forms[M]
    documents: list[Document[M]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    broken: set[tuple[str, str]] = field(default_factory=set)
    foreign: list[Foreign] = field(default_factory=list)

    def result(self) -> Documents[M]:
        """Return all that was read so far."""
        return Documents(
            tuple(self.documents),
            tuple(sorted(set(self.findings))),
            frozenset(self.broken),
            tuple(self.foreign),
        )

    def read_file(self, file: str, content: bytes) -> None:
        """Every document of one file."""
        try:
            for tree in read_trees(content, MAX_BYTES):
                self.read_tree(file, tree)
        except Unreadable as error:
            self._fault(file, error.place, str(error))

    def read_tree(self, file: str, tree: Tree) -> None:
        """One document of YAML: none of ours if it is empty, several if it is a List."""
        items = _items(tree.root)
        ours = [item for item in items or () if not self._passed_over(file, item[0])]
        # Faults in the text of other programs' documents are not reported.
        if ours or not items:
            for path, fault in tree.located_faults():
                self._fault(file, fault.place, fault.message, path)
        if items is None:
            place = yaml_tree.locate(tree.root, ("items",))
            self._fault(file, place, "want a list of documents", ("items",))
        for node, prefix in ours:
            self.read_document(file, node, prefix, sound=not tree.faults)

    def _passed_over(self, file: str, node: yaml_tree.Node) -> bool:
        data = yaml_tree.value(node)
        if not isinstance(data, dict) or not self.forms.foreign(data):
            return False
        kind, name = identity(node) or (str(data.get("kind")), "")
        self.foreign.append(Foreign(file, node.place[0], kind, name))
        return True

    def read_document(self, file: str, node: yaml_tree.Node, prefix: Path, *, sound: bool) -> None:
        """Read one document; `sound`: its text has no faults."""
        model, wrong, rest, left_out = judge(node, self.forms)
        self.findings += [
            Finding(file, *problem.place, path_text((*prefix, *problem.path)), problem.message)
            for problem in wrong
        ]
        if model is not None and sound:
            document = Document(file, model, rest, prefix, left_out)
            self.documents.append(document)
            self.findings += [
                document.finding(at, message, "warning", kind=kind)
                for at, message, kind in self.forms.cautions(model)
            ]
        elif name := identity(node):
            self.broken.add(name)

    def _fault(self, file: str, place: yaml_tree.Place, message: str, path: Path = ()) -> None:
        self.findings.append(Finding(file, *place, path_text(path), message))


def _items(root: yaml_tree.Node) -> list[tuple[yaml_tree.Node, Path]] | None:
    """Return the documents of one YAML document: none if it is empty, several if it is a List.

    None if it is a List that has no list of items.
    """
    if isinstance(root, yaml_tree.Scalar) and root.value is None:
        return []
    kind, items = yaml_tree.find(root, ("kind",)), yaml_tree.find(root, ("items",))
    if not (isinstance(kind, yaml_tree.Scalar) and kind.text.endswith("List")):
        return [(root, ())]
    if not isinstance(items, yaml_tree.Sequence):
        return None
    return [(item, ("items", index)) for index, item in enumerate(items.items)]
