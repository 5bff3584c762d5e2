"""Commands with help that fits a screen, without suggestions that delete; and all of the help."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import click
from click.formatting import wrap_text

if TYPE_CHECKING:
    from collections.abc import Iterator

# The `obj` of a context whose help is printed whole.
WHOLE: Final = "whole help"
MOST_LINES: Final = 40
# The usage line and the last one, with an empty line each.
_AROUND: Final = 4
# Nobody who mistypes an option means these.
_DANGEROUS: Final = ("--delete", "--yes", "--all", "--reset")
# Characters of the column of options' names.
_NAMES: Final = 30
# Where the text of an option begins.
_INDENT: Final = 2 + _NAMES + 2
_BLOCK: Final = "\b\n"


class Command(click.Command):
    """A command whose --help has at most MOST_LINES lines, where its examples leave room.

    These are: what it does, examples, exit codes if there is room, and a line for each option.
    `fairlead help COMMAND` prints everything.
    """

    def get_help_option_names(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the same names below every group; click keeps those of the first call."""
        return ["-h", "--help"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; no value is empty, and no suggestion for an unknown option deletes."""
        try:
            self._refuse_empty_values(ctx, args)
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            paths = [
                parameter.metavar
                for parameter in self.params
                if isinstance(parameter, click.Argument)
            ]
            if error.option_name == "-f" and any("PATH" in (path or "") for path in paths):
                text = "No such option '-f': give the path alone."
                raise click.NoSuchOption(error.option_name, text, ctx=error.ctx) from None
            near = [
                option for option in error.possibilities or () if not option.startswith(_DANGEROUS)
            ]
            raise click.NoSuchOption(error.option_name, error.message, near, error.ctx) from None

    def _refuse_empty_values(self, ctx: click.Context, args: list[str]) -> None:
        """Raise UsageError for an empty value: an option's type or default would give it a meaning.

        What follows `--` in `run create` is the command of a Run, which may have such arguments.
        """
        given, _, _ = self.make_parser(ctx).parse_args([*args])
        help_option = self.get_help_option(ctx)
        if ctx.resilient_parsing or (help_option and given.get(help_option.name or "")):
            return
        for parameter in self.params:
            value = given.get(parameter.name or "")
            if value == "" or (isinstance(value, (list, tuple)) and "" in value):
                what, cure = f"the value of {parameter.opts[-1]}", ", or leave the option out"
                if isinstance(parameter, click.Argument):
                    what, cure = f"the argument {parameter.make_metavar(ctx)}", ""
                raise click.UsageError(
                    f"{what} is empty, as of a variable that is not set: give one{cure}", ctx
                )

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the short help, unless the context asks for all of it."""
        if ctx.obj == WHOLE:
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        summary, *parts = inspect.cleandoc(self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(summary)
        blocks = [part.removeprefix(_BLOCK) for part in parts if part.startswith(_BLOCK)]
        codes = [block.splitlines() for block in blocks if block.startswith("Exit codes")]
        for text in blocks:
            if text.startswith("Examples"):
                _write(formatter, text.splitlines())
        left = MOST_LINES - len(formatter.getvalue().splitlines()) - _AROUND
        rows = [*self._rows(ctx)]
        for lines in codes:
            if len(lines) + 1 + len(rows) <= left:
                _write(formatter, lines)
                left -= len(lines) + 1
        shown = rows if len(rows) <= left else rows[: max(left - 1, 3)]
        more = len(rows) - len(shown)
        if rows:
            fitted = _fit(shown, left - len(shown) - bool(more), formatter.width)
            _write(formatter, ["Options:", *fitted, *([f"  ... and {more} more"] if more else [])])
        program, _, words = ctx.command_path.partition("fairlead")
        _write(formatter, [f"`{program}fairlead help{words}` has exit codes and all details."])

    def _rows(self, ctx: click.Context) -> Iterator[str]:
        """Yield a text for each option: its names, and the first sentence about it."""
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is None or not isinstance(option, click.Option) or "--help" in option.opts:
                continue
            names, text = record
            start = f"  {names:<{_NAMES}}  "
            yield start + " ".join(text.split()).partition(". ")[0].rstrip(".")


def _write(formatter: click.HelpFormatter, lines: list[str]) -> None:
    formatter.write_paragraph()
    formatter.write("".join(f"{' ' * _indent(lines)}{line}\n" for line in lines))


def _indent(lines: list[str]) -> int:
    return 0 if lines[0].startswith(("Options", "`")) else 2


def _fit(rows: list[str], room: int, width: int) -> Iterator[str]:
    """Yield the lines of the rows; those for which `room` has no more lines are cut to one."""
    for row in rows:
        lines = wrap_text(row[_INDENT:], width, row[:_INDENT], " " * _INDENT).splitlines()
        if len(lines) - 1 > room:
            lines = [_cut(row, width)]
        room -= len(lines) - 1
        yield from lines


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def _commands(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the commands of the group that is named so far."""
    group: click.Command | None = ctx.find_root().command
    for word in ctx.params.get("words") or ():
        group = group.get_command(ctx, word) if isinstance(group, click.Group) else None
    names = group.list_commands(ctx) if isinstance(group, click.Group) else []
    return [name for name in names if name.startswith(incomplete)]


@click.command("help", cls=Command)
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_commands)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the whole help of a command: all options, exit codes and details.

    \b
    Examples:
      fairlead help run create

    \b
    Exit codes:
      0  printed
      2  no such command
    """
    root = ctx.find_root()
    root.command.main([*words, "--help"], root.info_name, standalone_mode=False, obj=WHOLE)
