"""The command: one small module a subcommand, imported only when it is called."""

from __future__ import annotations

import sys

import click

import webhook
from webhook.errors import FairleadError

# Short helps stand here, so that `fairlead --help` imports no subcommand.
COMMANDS = {
    "check": "Validate policy files; with nodes, find policies that leave none.",
    "completion": "Print the shell code that completes this command.",
    "demo": "Show the webhook at work, with or without a cluster.",
    "explain": "Why a pod gets what it gets, policy by policy and field by field.",
    "mutate": "What pods would become, without a cluster.",
    "sandbox": "A real Kubernetes control plane on this machine.",
    "schema": "Print the JSON Schema of policy files, for editors.",
    "serve": "Run the admission webhook.",
    "sources": "The marks by which pods of each system are known.",
    "test": "Run policy tests from files.",
}


class Commands(click.Group):
    """The subcommands, each the attribute `command` of a module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Their names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one. An unknown name gives None, and click says which are near."""
        if cmd_name not in COMMANDS:
            return None
        module = __import__(f"webhook.cli.{cmd_name}", fromlist=["command"])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `fairlead --help`, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(webhook.__version__, prog_name="fairlead")
def fairlead() -> None:
    """Places machine-learning runs on Kubernetes.

    \b
    Start here:
      fairlead demo                               see it at work, without a cluster
      fairlead check policies/                    are these policies right?
      fairlead mutate -f pod.yaml --policies DIR  what would this pod become?
      fairlead explain -f pod.yaml --policies DIR and why?
    """


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 findings or failure, 2 wrong usage."""
    try:
        fairlead(prog_name="fairlead")
    except FairleadError as error:
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(str(error), err=True)
        sys.exit(1)
