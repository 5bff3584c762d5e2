"""Print results in the requested format, and notes and errors on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.color import chosen_color, color_option
from webhook.shortening import harmless
from webhook.text.documents import as_document
from webhook.text.layout import NO_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.errors import FairleadError


headers_option: Final[Callable[[Any], Any]] = click.option(
    "--no-headers",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, value: ctx.meta.update({NO_HEADERS: value}),
    help="Print tables without their first line.",
)


def output_option(
    description: str = "What to print.",
    formats: tuple[str, ...] = ("text", "json"),
    *,
    tables: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """-o, --output; the first of the formats is the default.

    tables: the text has tables.
    """
    option = click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=description,
    )
    more = headers_option if tables else lambda command: command
    return lambda command: option(more(color_option(hidden=True)(command)))


def print_result(
    output: str,
    *,
    json: Callable[[], Any],
    text: Callable[[], Iterable[str]] = tuple,
    yaml: Callable[[], Iterable[Any]] = tuple,
    markdown: Callable[[], str] = str,
    html: Callable[[], str] = str,
) -> None:
    """Print the result in the form that --output names. Only that form is made.

    json:     one document
    text:     lines
    yaml:     objects, each a document of its own
    markdown: the whole text, with its line ends
    html:     a page
    """
    match output:
        case "json":
            print_json(json())
        case "yaml":
            print_yaml(yaml())
        case "markdown":
            click.echo(markdown(), nl=False)
        case "html":
            click.echo(html())
        case _:
            print_text(output, text())


def print_text(output: str, lines: Iterable[str]) -> None:
    """Print lines as they come, unless the result is one document for programs at the end."""
    if output != "json":
        for line in lines:
            click.echo(line)


def print_json(result: Any) -> None:
    """Print a result for programs, as `as_document` has it."""
    # The import takes time, and most commands print text.
    import orjson

    document = as_document(result)
    try:
        printed = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        import json

        # Files may hold integers of more than 64 bits, and halves of surrogate pairs.
        whole = json.dumps(document, indent=2, ensure_ascii=False)
        printed = whole.encode(errors="backslashreplace").decode()
    click.echo(printed)


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
    say("error", str(error))


def say(word: str, text: str, colour: str = "red") -> None:
    """Write a line to stderr, after a word for its kind, such as `note`."""
    start = click.style(f"{word}: ", fg=colour, bold=True)
    click.echo(start, nl=False, err=True, color=chosen_color())
    click.echo(harmless(text), err=True)
