"""Convert Polyaxonfiles to a Run, with errors and notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.convert.polyaxon.complete import Converted, complete
from webhook.convert.polyaxon.components.component import convert_component as of_component
from webhook.convert.polyaxon.components.compose import RUNTIMES, composed
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import NOTHING, Item, Origin, to_item
from webhook.convert.polyaxon.old_schema.experiment import KINDS, REFUSED
from webhook.convert.polyaxon.old_schema.experiment import convert_old_document as of_old_schema
from webhook.errors import InvalidRun
from webhook.policy import yaml_tree
from webhook.policy.yaml_text import Unreadable, read_trees
from webhook.policy.yaml_tree import plain
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import KINDS as ENGINE_KINDS
from webhook.run.model import Run
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping


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
_OLD: Final = "document of the old schema"
_SEVERAL_OPERATIONS: Final = (
    "holds several operations, and a Run is made of one; give each a file of its own, of kind "
    "operation"
)
_VERSION: Final = "want 1, the version of the old schema; a component or an operation has 1.1"


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """The options of the command line.

    name:   the name of the Run, or ""
    image:  the image of every main container instead of the file's, or ""
    params: values by name, as text; they override the file's
    """

    name: str = ""
    image: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


def convert(files: Mapping[str, bytes], wanted: ConversionOptions | None = None) -> Converted:
    """Return the Run that the files describe: the old schema, a component, or an operation.

    An operation's component may be inside it, or in another document. Never raises. The order of
    the files does not matter.
    """
    wanted = wanted or ConversionOptions()
    notes = Notes()
    overrides = {
        name: Item(plain(text), Origin(_COMMAND_LINE, (1, 1), (1, 1), (name,)), text)
        for name, text in wanted.params.items()
    }
    document = _select_document(files, notes)
    if document is None:
        return Converted(findings=notes.in_order)
    extract = of_old_schema if document.find("kind").as_text in KINDS else of_component
    made = extract(document, wanted, overrides, notes)
    done = complete(made, document, wanted.name, notes)
    note = ""
    if done.run is not None:
        note = _note(document, done.run)
        if made.backend is not None:
            done = _delegate(done.document or {}, done.run, made.backend, notes)
    return done._replace(findings=notes.in_order, note=note)


def _delegate(document: Mapping[str, Any], run: Run, backend: Item, notes: Notes) -> Converted:
    """Return the Run with the backend of the file; without it, and a warning, if it cannot run it.

    What Polyaxon gave Kubeflow's operator is less than a Run may have, such as single replicas.
    """
    name = backend.as_text
    try:
        render_run(run, BACKENDS[name])
    except InvalidRun as error:
        why = "; ".join(error.problems)
        notes.warning(backend, f"{_NOT_DELEGATED}: {why}")
        return Converted(document, run)
    spec = {"kind": document["spec"]["kind"], "backend": name, **document["spec"]}
    document = {**document, "spec": spec}
    return Converted(document, Run.model_validate(document, by_alias=True, by_name=False))


def _note(document: Item, run: Run) -> str:
    """Return a note for a kind that Polyaxon gave to Kubeflow's operator; "" for any other."""
    word = document.find("run", "kind").as_text
    job = ENGINE_KINDS.get(RUNTIMES[word].framework) if word in RUNTIMES else None
    if job is None:
        return ""
    return (
        f"Polyaxon gives a {word} to Kubeflow's operator, as {job.kind}; Fairlead's own controller "
        f"runs {run.name}; add `backend: kubeflow` to its spec to keep Kubeflow's operator"
    )


def _select_document(files: Mapping[str, bytes], notes: Notes) -> Item | None:
    """Return the one document to convert, composed if necessary; None after noting errors."""
    documents_by_kind: dict[str, list[Item]] = {_OLD: [], OPERATION: [], COMPONENT: []}
    for file, content in files.items():
        for item in read_file(file, content, notes):
            if kind := _kind(item, notes):
                documents_by_kind[kind].append(item)
    if notes.errors:
        return None
    first = [some[0] for some in documents_by_kind.values() if some]
    for what, several in documents_by_kind.items():
        for item in several[1:]:
            notes.error(item, _SEVERAL.format(what=what, first=_where(several[0])))
    if documents_by_kind[_OLD] and len(first) > 1:
        notes.error(first[0], _MIXED.format(first=_where(first[1])))
    if not first:
        file = next(iter(files), _COMMAND_LINE)
        notes.error(Origin(file, (1, 1), (1, 1)), _NOTHING)
    if notes.errors:
        return None
    if documents_by_kind[_OLD]:
        return first[0]
    return composed(
        next(iter(documents_by_kind[OPERATION]), None),
        next(iter(documents_by_kind[COMPONENT]), None),
        notes,
    )


def _where(item: Item) -> str:
    return f"{item.origin.file}:{item.origin.place[0]}"


def read_file(file: str, content: bytes, notes: Notes) -> list[Item]:
    """Return the documents of one file; what is wrong with the text is noted."""
    result = []
    try:
        for tree in read_trees(content, MAX_BYTES):
            for path, fault in tree.located_faults():
                notes.error(Origin(file, fault.place, fault.place, path), fault.message)
            if not (isinstance(tree.root, yaml_tree.Scalar) and tree.root.value is None):
                result.append(to_item(tree.root, file))
    except Unreadable as error:
        notes.error(Origin(file, error.place, error.place), str(error))
    return result


def _kind(item: Item, notes: Notes) -> str:
    """Return what a document is; "" after noting an error."""
    if not isinstance(item.value, dict):
        notes.error(item, "want a Polyaxonfile: a mapping with version and kind")
        return ""
    kind_of, version = item.find("kind"), item.find("version")
    kind = "" if kind_of.value is None else kind_of.as_text
    if kind_of.value is None and version.as_text != "1":
        # Polyaxon allows a document without a kind since 2.
        kind = COMPONENT if "run" in item.entries else ""
        kind = OPERATION if any(name in item.entries for name in _OF_OPERATIONS) else kind
    if kind in (OPERATION, COMPONENT):
        return kind
    if kind in KINDS:
        if version is not NOTHING and version.as_text not in ("1", "1.0"):
            notes.error(version, f"{_VERSION}, not {quoted(version.text)}")
        return _OLD
    operations = item.find("operations")
    if kind in REFUSED:
        notes.error(kind_of, f"is {kind}: {REFUSED[kind]}")
    elif isinstance(operations.value, tuple):
        notes.error(operations, _SEVERAL_OPERATIONS, key=True)
    else:
        kinds = (*KINDS, COMPONENT, OPERATION)
        message = f"is required: one of {', '.join(kinds)}"
        if kind:
            message = f"{quoted(kind)} is not one of {', '.join(kinds)}{guess(kind, kinds)}"
        missing = kind_of is NOTHING
        notes.error(item if missing else kind_of, message, below=("kind",) if missing else ())
    return ""
