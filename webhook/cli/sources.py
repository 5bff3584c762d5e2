"""`fairlead sources`: print the table of marks, by which pods of every system are known."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.output_option import output_option
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.sources.marks import Clause, Source

_WIDTH = 100
_FIELD = 13


@click.command("sources")
@output_option("How to print the table.")
def command(output: str) -> None:
    """Print how Fairlead tells which pods belong to a run, and what they are there.

    Rows are in order of precedence. A pod belongs to the first row whose mark it carries; each
    fact comes from the first row that marks the pod and tells it, and within a row from the first
    line that does. An arrow turns another system's word into ours.

    \b
    Examples:
      fairlead sources                       the table
      fairlead sources -o json | jq -r '.[].name'
    """
    if output == "json":
        click.echo(json.dumps([_row(source) for source in SOURCES], indent=2))
    else:
        click.echo(render(SOURCES, heading=lambda text: click.style(text, bold=True)))


def render(sources: Iterable[Source], heading: Callable[[str], str] = str) -> str:
    """The table as aligned plain text of at most 100 columns, one block a row, without a final
    newline. `heading` may decorate the blocks' first lines."""
    return "\n\n".join(
        "\n".join(
            (
                heading(f"{place:2}  {source.name}: {source.system}"),
                *(line for field, text in _fields(source) for line in _wrap(field, text)),
            )
        )
        for place, source in enumerate(sources, start=1)
    )


def _fields(source: Source) -> Iterator[tuple[str, str]]:
    yield "marked by", " or ".join(map(str, source.marks))
    if source.run:
        yield "run", ", else ".join(map(str, source.run))
    yield from _told("kind", source.kind, source.kind_always)
    yield from _told("framework", source.framework, source.framework_always)
    yield from _told("role", source.role)
    # Where a key counts under a condition, keys are weighed together: the note says how.
    if any(each.when for each in source.index):
        yield "index", "from " + ", ".join(map(str, source.index_keys))
    elif source.index:
        yield "index", ", else ".join(map(str, source.index_keys))
    if source.leads_keys:
        yield "coordinator", "from " + ", ".join(map(str, source.leads_keys))
    if source.note:
        yield "note", source.note
    yield "written by", source.origin


def _told(
    field: str, clauses: tuple[Clause, ...], always: str | None = None
) -> Iterator[tuple[str, str]]:
    told = [f"{clause.key}: {_words(clause)}" for clause in clauses]
    if always is not None:
        told.append(f"else {always}" if told else f"always {always}")
    for line, text in enumerate(told):
        yield ("" if line else field), text


def _words(clause: Clause) -> str:
    if isinstance(clause.words, str):
        return f"any value → {clause.words}"
    theirs: dict[str, list[str]] = {}
    for their, our in clause.words.items():
        theirs.setdefault(our, []).append(their)
    return ", ".join(
        our if words == [our] else f"{'|'.join(words)} → {our}" for our, words in theirs.items()
    )


def _wrap(field: str, text: str) -> list[str]:
    # Keys are broken at blanks only: one cut in two could not be copied.
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"    {field:{_FIELD}}",
        subsequent_indent=" " * (4 + _FIELD),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _row(source: Source) -> dict[str, Any]:
    def clauses(told: tuple[Clause, ...], always: str | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {
                **clause.key._asdict(),
                **(
                    {"always": clause.words}
                    if isinstance(clause.words, str)
                    else {"words": dict(clause.words)}
                ),
            }
            for clause in told
        ]
        return [*rows, {"always": always}] if always is not None else rows

    return {
        "name": source.name,
        "system": source.system,
        "marks": [mark._asdict() for mark in source.marks],
        "run": [key._asdict() for key in source.run],
        "kind": clauses(source.kind, source.kind_always),
        "framework": clauses(source.framework, source.framework_always),
        "role": clauses(source.role),
        "index": [key._asdict() for key in source.index_keys],
        "coordinator": [key._asdict() for key in source.leads_keys],
        "note": source.note,
        "origin": source.origin,
    }
