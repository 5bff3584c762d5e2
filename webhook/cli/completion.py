"""`fairlead completion`: print shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from webhook.cli.short_help import Command


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell code that completes this command.

    \b
    Examples:
      bash:  echo 'eval "$(fairlead completion bash)"' >> ~/.bashrc
      zsh:   echo 'eval "$(fairlead completion zsh)"' >> ~/.zshrc
      fish:  fairlead completion fish > ~/.config/fish/completions/fairlead.fish
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.BadParameter(f"no completion for {shell}")
    root = ctx.find_root().command
    click.echo(completer(root, {}, "fairlead", "_FAIRLEAD_COMPLETE").source())
