"""`fairlead help`: print the help of a command."""

from __future__ import annotations

import click

from webhook.cli.short_help import WHOLE, Command


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
