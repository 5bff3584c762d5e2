"""Polyaxonfiles to a Run, with everything that is wrong with them or has no meaning here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook.policy.scalars import plain
from webhook.run.polyaxon.asked import Wanted
from webhook.run.polyaxon.complete import complete
from webhook.run.polyaxon.components.compose import composed
from webhook.run.polyaxon.components.document import made as of_component
from webhook.run.polyaxon.documents import documents
from webhook.run.polyaxon.item import Item, Origin
from webhook.run.polyaxon.notes import Notes
from webhook.run.polyaxon.old_schema.document import made as of_old_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.policy.findings import Finding
    from webhook.run.model import Run
    from webhook.run.polyaxon.documents import Documents

_SEVERAL: Final = "is one {what} more; a Run is made of one, and {first} is one already"
_MIXED: Final = "is of the old schema, and {first} is a component or an operation; give one alone"
_NOTHING: Final = "there is no Polyaxonfile in it"
_COMMAND_LINE: Final = "--param"


@dataclass(frozen=True, slots=True)
class Converted:
    """document: the Run as JSON, in the order of its model; None where there are errors.

    findings: errors and warnings, in order of file and place.
    """

    document: Mapping[str, Any] | None
    run: Run | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if each.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are warnings."""
        return tuple(each for each in self.findings if each.severity == "warning")


def convert(files: Mapping[str, bytes], wanted: Wanted | None = None) -> Converted:
    """The Run that the files describe: one of the old schema, a component, or an operation.

    An operation's component may stand in it, or in another document. Never raises, whatever is in
    the files. The order of the files does not matter.
    """
    wanted = wanted or Wanted()
    notes = Notes()
    overrides = {name: _given(name, text) for name, text in wanted.params.items()}
    found = documents(files, notes)
    document = None if found.broken else _chosen(found, files, notes)
    done = None
    if document is not None:
        of = of_old_schema if found.old else of_component
        made = of(document, wanted, overrides, notes)
        if not notes.errors:
            done = complete(made, document, wanted.name, notes)
    if done is None:
        return Converted(None, None, notes.in_order)
    return Converted(done.document, done.run, notes.in_order)


def _given(name: str, text: str) -> Item:
    """A param of the command line, read as YAML would."""
    return Item(plain(text), Origin(_COMMAND_LINE, (1, 1), (1, 1), (name,)), text)


def _chosen(found: Documents, files: Mapping[str, bytes], notes: Notes) -> Item | None:
    """The one document to convert, composed if it has to be; None, and errors, if it is not."""
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
