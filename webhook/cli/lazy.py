"""A command group whose subcommands are imported when they are called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.exit_codes import INTERRUPTED, usage_exits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

# The heading of subcommands that --help does not list.
HIDDEN: Final = ""


class LazyGroup(click.Group):
    """Subcommands by name, each the attribute `command` of a module of its name in `package`.

    The module has `_` for `-`; `elsewhere` names other modules, and after a colon another
    attribute. A subcommand that is added to the group needs no module. `table` has each one's short
    help, so that the group's own --help imports no subcommand; `sections` has tables by heading
    instead, in the order of --help.
    """

    def __init__(
        self,
        *arguments: Any,
        package: str,
        table: Mapping[str, str] | None = None,
        sections: Mapping[str, Mapping[str, str]] | None = None,
        elsewhere: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._package = package
        self._sections = sections or {"Commands": dict(sorted((table or {}).items()))}
        self._table = {
            name: text for section in self._sections.values() for name, text in section.items()
        }
        self._elsewhere = elsewhere or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Their names, sorted."""
        return sorted(self._table)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the subcommands that --help lists, from the tables: none is imported."""
        from click.shell_completion import CompletionItem

        completion_items = [
            CompletionItem(name, help=text)
            for heading, table in self._sections.items()
            for name, text in table.items()
            if heading != HIDDEN and name.startswith(incomplete)
        ]
        return [*completion_items, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one. An unknown name gives None."""
        if cmd_name in self.commands or cmd_name not in self._table:
            return self.commands.get(cmd_name)
        usual = f"{self._package}.{cmd_name.replace('-', '_')}"
        name, _, attribute = self._elsewhere.get(cmd_name, usual).partition(":")
        module = __import__(name, fromlist=["command"])
        command: click.Command = getattr(module, attribute or "command")
        return command

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the command line; click would exit with 1 after Ctrl-C."""
        try:
            with usage_exits():
                return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without any, print help, as kubectl does; click would print it on stderr."""
        try:
            return super().parse_args(ctx, args or ([] if ctx.resilient_parsing else ["--help"]))
        except click.NoSuchOption as error:
            # kubectl takes its options before the command, too.
            text = f"No such option {error.option_name!r} here: options stand after the command."
            raise click.NoSuchOption(error.option_name, text, error.possibilities, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the subcommand; wrong settings are wrong usage, and Ctrl-C has its exit code."""
        try:
            with usage_exits():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; for an unknown name, the error names the command that is meant."""
        name = args[0]
        if name not in self._table and not ctx.resilient_parsing:
            from difflib import get_close_matches

            from webhook.cli.other_names import answer_for

            above = ctx.command_path.removeprefix(ctx.find_root().command_path).split()
            if answer := answer_for(" ".join((*above, *args[:2])), " ".join((*above, name))):
                ctx.fail(answer)
            for near in get_close_matches(name, self._table, n=1):
                ctx.fail(f"No such command {name!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands alone: a group has no options but those of every command."""
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list in the group's --help, from the tables."""
        for heading, table in self._sections.items():
            if heading != HIDDEN:
                with formatter.section(heading):
                    formatter.write_dl([*table.items()])
