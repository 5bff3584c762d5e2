"""`fairlead help`: print the help of a command."""

from __future__ import annotations

import click

from webhook.cli.short_help import WHOLE, Command


@click.command("help", cls=Command)
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
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
