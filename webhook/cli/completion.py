"""`fairlead completion`: print shell completion; and what kubectl asks of its plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from webhook.cli.short_help import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# What kubectl does about files, by the type of click's items: the directives of spf13/cobra.
_DIRECTIVES: Final = {"plain": 4, "file": 0, "dir": 16}
_VARIABLE: Final = "_FAIRLEAD_COMPLETE"


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell code that completes this command.

    `kubectl fairlead` needs none: kubectl's own completion calls kubectl_complete-fairlead, which
    is installed beside this command.

    \b
    Examples:
      bash:        echo 'eval "$(fairlead completion bash)"' >> ~/.bashrc
      zsh:         echo 'eval "$(fairlead completion zsh)"' >> ~/.zshrc
      fish:        fairlead completion fish > ~/.config/fish/completions/fairlead.fish
      powershell:  fairlead completion powershell >> $PROFILE
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.BadParameter(f"no completion for {shell}")
    root = ctx.find_root().command
    click.echo(completer(root, {}, "fairlead", _VARIABLE).source())


def complete_for_kubectl(root: click.Command, words: Sequence[str]) -> Iterator[str]:
    """Yield what completes the last word, each with its help, and a directive.

    kubectl calls kubectl_complete-NAME with the words after NAME:
    https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/
    """
    *given, last = words or [""]
    items = ShellComplete(root, {}, "fairlead", _VARIABLE).get_completions(given, last)
    types = {item.type for item in items}
    for item in items if types <= {"plain"} else ():
        yield f"{item.value}\t{item.help}" if item.help else str(item.value)
    yield f":{_DIRECTIVES[types.pop() if len(types) == 1 else 'plain']}"
