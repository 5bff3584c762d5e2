"""Print results in the requested format, and notes and errors on stderr."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.color import chosen_color, color_option
from webhook.errors import FairleadError, WrongUsage
from webhook.shortening import harmless
from webhook.text.documents import as_document, as_finding, as_report
from webhook.text.layout import NO_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


headers_option: Final[Callable[[Any], Any]] = click.option(
    "--no-headers",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, value: ctx.meta.update({NO_HEADERS: value}),
    help="Print tables without their first line.",
)


# The forms of commands that read objects, which have names.
READER_FORMS: Final = ("text", "json", "yaml", "name")
# Those of commands whose text is a table.
TABLE_FORMS: Final = ("text", "wide", "json", "yaml", "name")


class OutputOption(click.Option):
    """-o, --output. `report` is the kind of what the forms in `reports` print; empty: none does."""

    def __init__(
        self, *flags: Any, report: str = "", reports: tuple[str, ...] = (), **attributes: Any
    ) -> None:
        super().__init__(*flags, **attributes)
        self.report = report
        self.reports = reports if report else ()


def output_option(
    description: str = "What to print.",
    formats: tuple[str, ...] = ("text", "json", "yaml"),
    *,
    report: str = "",
    reports: tuple[str, ...] = ("json", "yaml"),
    tables: bool = False,
    default: str | None = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """-o, --output; the first of the formats is the default. With it, --color and --no-headers.

    report:  the kind of what these forms print, for programs; all others, and all without a kind,
             are objects as kubectl takes them, or texts
    tables:  the text has tables
    default: None: -o is not given, and the command prints something else
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def reporting(*arguments: Any, **given: Any) -> Any:
            with _reported(_Report(report if given["output"] in reports else "", given["output"])):
                return command(*arguments, **given)

        decorated: Callable[..., Any] = color_option(hidden=True)(reporting)
        option = click.option(
            "-o",
            "--output",
            cls=OutputOption,
            report=report,
            reports=reports,
            type=click.Choice(formats),
            default=formats[0] if default == "" else default,
            show_default=True,
            help=description,
        )
        return option(headers_option(decorated) if tables else decorated)

    return decorate


@dataclass(slots=True)
class _Report:
    """What a command prints for programs, and the errors on the way to it; no kind: no report."""

    kind: str
    form: str
    errors: list[FairleadError] = field(default_factory=list)
    is_printed: bool = False


_REPORT: Final = "output.report"


@contextmanager
def _reported(report: _Report) -> Iterator[None]:
    """Print the errors of a command that failed before it printed its report as one of its kind."""
    meta = click.get_current_context().meta
    meta[_REPORT] = report
    try:
        yield
    except WrongUsage:
        raise
    except FairleadError as error:
        report.errors.append(error)
        raise
    finally:
        if report.kind and report.errors and not report.is_printed:
            problems = [problem for error in report.errors for problem in _problems(error)]
            print_result(report.form, json=lambda: {"findings": [*map(as_finding, problems)]})


def _problems(error: FairleadError) -> Iterable[object]:
    """Return the findings of an error, or its lines."""
    problems: Iterable[object]
    problems = getattr(error, "findings", None) or getattr(error, "problems", None) or [str(error)]
    return problems


def print_result(
    output: str,
    *,
    json: Callable[[], Any] = dict,
    text: Callable[[], Iterable[str]] = tuple,
    yaml: Callable[[], Iterable[Any]] | None = None,
    names: Callable[[], Iterable[str]] = tuple,
    markdown: Callable[[], str] = str,
    html: Callable[[], str] = str,
) -> None:
    """Print the result in the form that --output names. Only that form is made.

    json:     one document; also for patch
    text:     lines; also for wide, and those of a picture for svg
    yaml:     objects, each a document of its own; without it, the document of json
    names:    objects as kubectl names them, once each
    markdown: the whole text, with its line ends
    html:     a page

    Raises NotImplementedError for any other form: a command prints those of its own itself.
    """
    match output:
        case "text" | "wide" | "svg":
            print_text(output, text())
        case "json" | "patch":
            print_json(_document(json()))
        case "yaml":
            print_yaml(yaml() if yaml else [_plain(_document(json()))])
        case "name":
            print_text(output, dict.fromkeys(names()))
        case "markdown":
            click.echo(markdown(), nl=False)
        case "html":
            click.echo(html())
        case _:
            raise NotImplementedError(output)


def _document(result: Any) -> Any:
    """Return the report of this result, if the command prints reports."""
    report = click.get_current_context().meta.get(_REPORT)
    if not (report and report.kind):
        return result
    report.is_printed = True
    return as_report(report.kind, result)


def print_text(output: str, lines: Iterable[str]) -> None:
    """Print lines as they come, unless the result is one document for programs at the end."""
    if output not in ("json", "yaml"):
        for line in lines:
            click.echo(line)


def print_json(result: Any) -> None:
    """Print a result for programs, as `as_document` has it."""
    click.echo(_json_text(result))


def _json_text(result: Any) -> str:
    # The import takes time, and most commands print text.
    import orjson

    document = as_document(result)
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        import json

        # Files may hold integers of more than 64 bits, and halves of surrogate pairs.
        whole = json.dumps(document, indent=2, ensure_ascii=False)
        return whole.encode(errors="backslashreplace").decode()


def _plain(result: Any) -> Any:
    """Return what JSON has of a result, such as texts in place of enums, as YAML wants it."""
    import json

    return json.loads(_json_text(result))


def print_yaml(objects: Iterable[Any]) -> None:
    """Print objects for kubectl, each a document of its own."""
    from webhook.text.yaml_out import yaml_documents

    click.echo(yaml_documents(objects), nl=False)


def print_aside(line: str) -> None:
    """Write a line to stderr, beside the result."""
    click.echo(line, err=True)


def confirm(question: str) -> None:
    """Ask on the terminal. Raises click.Abort without a yes, and KeyboardInterrupt for Ctrl-C.

    asyncio.run alone would not stop at Ctrl-C before there is an answer.
    """
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        # click makes one exception of Ctrl-C, of the end of input, and of a no.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say("note", note, "yellow")


def print_error(error: FairleadError) -> None:
    """Write the error to stderr; a report of the command that is not printed has it too."""
    context = click.get_current_context(silent=True)
    if report := context and context.meta.get(_REPORT):
        report.errors.append(error)
    say("error", str(error))


def say(word: str, text: str, colour: str = "red") -> None:
    """Write a line to stderr, after a word for its kind, such as `note`."""
    start = click.style(f"{word}: ", fg=colour, bold=True)
    click.echo(start, nl=False, err=True, color=chosen_color())
    click.echo(harmless(text), err=True)
