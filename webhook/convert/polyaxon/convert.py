"""Convert Polyaxonfiles to a Run, with errors and notes."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.convert.polyaxon.complete import Complete, complete
from webhook.convert.polyaxon.components.component import convert_component as of_component
from webhook.convert.polyaxon.components.compose import composed
from webhook.convert.polyaxon.components.shortcuts import RUNTIMES
from webhook.convert.polyaxon.draft import ConversionOptions, Notes
from webhook.convert.polyaxon.item import Item, Origin, to_item
from webhook.convert.polyaxon.old_schema.experiment import KINDS, REFUSED
from webhook.convert.polyaxon.old_schema.experiment import convert_old_document as of_old_schema
from webhook.errors import InvalidRun
from webhook.policy import yaml_tree
from webhook.policy.yaml_text import Unreadable, character_place, trees
from webhook.policy.yaml_tree import plain
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import KINDS as ENGINE_KINDS
from webhook.run.model import Run
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.policy.findings import Finding, Path
    from webhook.policy.yaml_text import Fault, Tree

_SEVERAL: Final = "is one {what} more; a Run is made of one, and {first} is one already"
_MIXED: Final = "is of the old schema, and {first} is a component or an operation; give one alone"
_NOTHING: Final = "it has no Polyaxonfile, and no object of another engine"
_COMMAND_LINE: Final = "--param"
_NOT_DELEGATED: Final = "is left out, and Fairlead runs the replicas itself"
# Larger files are not written by hand.
MAX_BYTES: Final = 2**20
OPERATION: Final = "operation"
COMPONENT: Final = "component"
# Fields that identify an operation without a kind.
_OF_OPERATIONS: Final = ("component", "hubRef", "pathRef", "urlRef", "dagRef", "runPatch")
_OPERATIONS: Final = "operations"
_SEVERAL_OPERATIONS: Final = (
    "holds several operations, and a Run is made of one; give each a file of its own, of kind "
    "operation"
)
_VERSION: Final = "want 1, the version of the old schema; a component or an operation has 1.1"


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a conversion.

    document: the Run as JSON, in the order of its model; None if there are errors
    findings: errors and warnings, in order of file and place
    note: about the file as a whole, or ""
    """

    document: Mapping[str, Any] | None
    run: Run | None
    findings: tuple[Finding, ...]
    note: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if each.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return tuple(each for each in self.findings if each.severity == "warning")


def convert(files: Mapping[str, bytes], wanted: ConversionOptions | None = None) -> Converted:
    """Return the Run that the files describe: the old schema, a component, or an operation.

    An operation's component may be inside it, or in another document. Never raises. The order of
    the files does not matter.
    """
    wanted = wanted or ConversionOptions()
    notes = Notes()
    overrides = {name: _parse_param(name, text) for name, text in wanted.params.items()}
    found = documents(files, notes)
    document = None if found.broken else _select_document(found, files, notes)
    done = None
    if document is not None:
        of = of_old_schema if found.old else of_component
        made = of(document, wanted, overrides, notes)
        done = complete(made, document, wanted.name, notes)
        if done is not None and made.backend is not None:
            done = _delegate(done, made.backend, notes)
    if done is None or document is None:
        return Converted(None, None, notes.in_order)
    return Converted(done.document, done.run, notes.in_order, _note(document, done.run))


def _delegate(done: Complete, backend: Item, notes: Notes) -> Complete:
    """Return the Run with the backend of the file; without it, and a warning, if it cannot run it.

    What Polyaxon gave Kubeflow's operator is less than a Run may have, such as single replicas.
    """
    name = backend.as_text
    try:
        render_run(done.run, BACKENDS[name])
    except InvalidRun as error:
        why = "; ".join(error.problems)
        notes.warning(backend, f"{_NOT_DELEGATED}: {why}")
        return done
    spec = {"kind": done.document["spec"]["kind"], "backend": name, **done.document["spec"]}
    document = {**done.document, "spec": spec}
    return Complete(document, Run.model_validate(document, by_alias=True, by_name=False))


def _note(document: Item, run: Run) -> str:
    """Return a note for a kind that Polyaxon gave to Kubeflow's operator; "" for any other."""
    section = document.entries.get("run")
    kind = section.entries.get("kind") if section is not None else None
    word = kind.as_text if kind is not None else ""
    job = ENGINE_KINDS.get(RUNTIMES[word].framework) if word in RUNTIMES else None
    if job is None:
        return ""
    return (
        f"Polyaxon gives a {word} to Kubeflow's operator, as {job.kind}; Fairlead's own controller "
        f"runs {run.name}; add `backend: kubeflow` to its spec to keep Kubeflow's operator"
    )


def _parse_param(name: str, text: str) -> Item:
    """Parse a param of the command line as YAML."""
    return Item(plain(text), Origin(_COMMAND_LINE, (1, 1), (1, 1), (name,)), text)


def _select_document(found: Documents, files: Mapping[str, bytes], notes: Notes) -> Item | None:
    """Return the one document to convert, composed if necessary; None after noting errors."""
    for what, several in (
        ("document of the old schema", found.old),
        ("operation", found.operations),
        ("component", found.components),
    ):
        for item in several[1:]:
            first = _where(several[0])
            notes.error(item, _SEVERAL.format(what=what, first=first))
    newer = [*found.operations, *found.components]
    if found.old and newer:
        notes.error(found.old[0], _MIXED.format(first=_where(newer[0])))
    if not found.old and not newer:
        file = next(iter(files), _COMMAND_LINE)
        notes.error(Origin(file, (1, 1), (1, 1)), _NOTHING)
    if notes.errors:
        return None
    if found.old:
        return found.old[0]
    operation = next(iter(found.operations), None)
    return composed(operation, next(iter(found.components), None), notes)


def _where(item: Item) -> str:
    return f"{item.origin.file}:{item.origin.place[0]}"


@dataclass
class Documents:
    """The documents by kind."""

    old: list[Item] = field(default_factory=list)
    operations: list[Item] = field(default_factory=list)
    components: list[Item] = field(default_factory=list)
    broken: bool = False


def documents(files: Mapping[str, bytes], notes: Notes) -> Documents:
    """Return all documents in the order of files; notes errors in the text."""
    found = Documents()
    for file, content in files.items():
        for item in read_file(file, content, notes):
            _file(item, found, notes)
    found.broken = bool(notes.errors)
    return found


def read_file(file: str, content: bytes, notes: Notes) -> list[Item]:
    """Return the documents of one file; what is wrong with the text is noted."""

    def fault(place: yaml_tree.Place, message: str, path: Path = ()) -> None:
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
            if not (isinstance(tree.root, yaml_tree.Scalar) and tree.root.value is None):
                result.append(to_item(tree.root, file))
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
        for path, node in yaml_tree.walk(tree.root):
            paths.setdefault(id(node), path)
    return [
        (paths.get(id(each.of), ()) + (() if each.key is None else (each.key,)), each)
        for each in tree.faults
    ]


def _file(item: Item, found: Documents, notes: Notes) -> None:
    """Add one document to its list, or note an error."""
    if not isinstance(item.value, dict):
        notes.error(item, "want a Polyaxonfile: a mapping with version and kind")
        return
    kind_of = item.entries.get("kind")
    kind = kind_of.as_text if kind_of is not None and kind_of.value is not None else _guessed(item)
    if kind == OPERATION:
        found.operations.append(item)
    elif kind == COMPONENT:
        found.components.append(item)
    elif kind in KINDS:
        version = item.entries.get("version")
        if version is not None and version.as_text not in ("1", "1.0"):
            notes.error(version, f"{_VERSION}, not {quoted(version.text)}")
        found.old.append(item)
    elif kind in REFUSED and kind_of is not None:
        notes.error(kind_of, f"is {kind}: {REFUSED[kind]}")
    elif isinstance(item.entries.get(_OPERATIONS, item).value, tuple):
        notes.error(item.entries[_OPERATIONS], _SEVERAL_OPERATIONS, key=True)
    else:
        known = (*KINDS, COMPONENT, OPERATION)
        hint = guess(kind, known)
        message = (
            f"{quoted(kind)} is not one of {', '.join(known)}{hint}"
            if kind
            else (f"is required: one of {', '.join(known)}")
        )
        notes.error(kind_of or item, message, below=() if kind_of else ("kind",))


def _guessed(item: Item) -> str:
    """Return the kind of a document without one, which Polyaxon allows since 2."""
    version = item.entries.get("version")
    if version is not None and version.as_text == "1":
        return ""
    if any(name in item.entries for name in _OF_OPERATIONS):
        return OPERATION
    return COMPONENT if "run" in item.entries else ""
