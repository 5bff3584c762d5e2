"""`fairlead policy sources`: print the labels by which Fairlead recognizes each system's pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.cli.options import cluster_options, policies_option
from webhook.cli.output import TABLE_FORMS, output_option, print_result
from webhook.cli.short_help import Command
from webhook.questions.where import Where, paths_of
from webhook.sources import SOURCES
from webhook.text.layout import hanging, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.sources.marks import Clause, Source

_WIDTH = 100
_FIELD = 13


@click.command("sources", cls=Command)
@policies_option(
    "Also the systems of the documents RunSource in this file or folder, or `cluster` for the "
    "objects of the cluster. May be repeated.",
    "paths",
)
@cluster_options
@output_option(
    "wide: with every label that is read, in lines below each.",
    TABLE_FORMS,
    report="SourceList",
    tables=True,
)
def command(paths: tuple[Where, ...], kubeconfig: Kubeconfig, output: str) -> None:
    """List the labels by which Fairlead recognizes pods of runs, and their roles.

    Rows are in order of precedence. A pod belongs to the first row whose label it has. Each fact
    comes from the first matching row that has it, and within a row from the first line. An arrow
    shows the translation of another system's value.

    \b
    Examples:
      fairlead policy sources                       the table
      fairlead policy sources -o wide               with every label that is read
      fairlead policy sources -o json | jq -r '.sources[].name'
      fairlead policy sources --policies mine/      with the systems of your own
      fairlead policy sources --policies cluster    with those of the cluster

    \b
    Exit codes:
      0  printed
      1  a file cannot be read, or has errors
      2  wrong usage, or the cluster did not answer
    """
    rows = SOURCES
    if paths:
        rows = _rows(paths, kubeconfig)
    print_result(
        output,
        json=lambda: {"sources": [_row(source) for source in rows]},
        text=lambda: (
            [render(rows, heading=lambda text: click.style(text, bold=True))]
            if output == "wide"
            else table(("name", "system", "marked by"), [*map(_cells, rows)])
        ),
        names=lambda: (kubectl_name(names.GROUP, names.SOURCE_KIND, row.name) for row in rows),
    )


def _cells(source: Source) -> tuple[str, str, str]:
    return source.name, source.system, _marked_by(source)


def _rows(paths: tuple[Where, ...], kubeconfig: Kubeconfig) -> tuple[Source, ...]:
    from webhook.questions.live.live_answers import policy_set
    from webhook.questions.offline import read_policies

    if files := paths_of(paths):
        return read_policies(files).sources.rows
    return kubeconfig.ask(lambda client: policy_set(client, paths)).sources.rows


def render(sources: Iterable[Source], heading: Callable[[str], str] = str) -> str:
    """Return the table as aligned plain text of at most 100 columns, one block a row, without a
    final newline. `heading` may decorate the blocks' first lines.
    """
    return "\n\n".join(
        "\n".join(
            (
                heading(f"{place:2}  {source.name}: {source.system}"),
                *(
                    line
                    for field, text in _fields(source)
                    for line in hanging(text, 4 + _FIELD, f"    {field:{_FIELD}}", _WIDTH)
                ),
            )
        )
        for place, source in enumerate(sources, start=1)
    )


def _fields(source: Source) -> Iterator[tuple[str, str]]:
    yield "marked by", _marked_by(source)
    if source.run:
        yield "run", ", else ".join(map(str, source.run))
    yield from _clause_rows("kind", source.kind, source.kind_always)
    yield from _clause_rows("framework", source.framework, source.framework_always)
    yield from _clause_rows("role", source.role)
    # Where a key counts under a condition, keys are weighed together: the note says how.
    for field, given, keys in (
        ("index", source.index, source.index_keys),
        ("replicas", source.replicas, source.replicas_keys),
    ):
        if any(key.when for key in given):
            yield field, "from " + ", ".join(map(str, keys))
        elif given:
            yield field, ", else ".join(map(str, keys))
    if source.leads_keys:
        yield "coordinator", "from " + ", ".join(map(str, source.leads_keys))
    if source.note:
        yield "note", source.note
    if source.origin:
        yield "written by", source.origin


def _marked_by(source: Source) -> str:
    return " or ".join(map(str, source.marks))


def _clause_rows(
    field: str, clauses: tuple[Clause, ...], always: str | None = None
) -> Iterator[tuple[str, str]]:
    entries = [f"{clause.key}: {_clause_text(clause)}" for clause in clauses]
    if always is not None:
        entries.append(f"else {always}" if entries else f"always {always}")
    for line, text in enumerate(entries):
        yield ("" if line else field), text


def _clause_text(clause: Clause) -> str:
    if isinstance(clause.words, str):
        return f"any value → {clause.words}"
    theirs: dict[str, list[str]] = {}
    for their, our in clause.words.items():
        theirs.setdefault(our, []).append(their)
    return ", ".join(
        our if words == [our] else f"{'|'.join(words)} → {our}" for our, words in theirs.items()
    )


def _row(source: Source) -> dict[str, Any]:
    def clauses(entries: tuple[Clause, ...], always: str | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {
                **clause.key._asdict(),
                **(
                    {"always": clause.words}
                    if isinstance(clause.words, str)
                    else {"words": dict(clause.words)}
                ),
            }
            for clause in entries
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
        "replicas": [key._asdict() for key in source.replicas_keys],
        "coordinator": [key._asdict() for key in source.leads_keys],
        "note": source.note,
        "origin": source.origin,
    }
