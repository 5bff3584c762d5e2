"""`fairlead help`: print the help of a command."""

from __future__ import annotations

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of a command: `fairlead help run create` is `fairlead run create --help`.

    \b
    Exit codes:
      0  printed
      2  no such command
    """
    root = ctx.find_root()
    root.command.main([*words, "--help"], root.info_name, standalone_mode=False)
