"""The command: one small module a subcommand, imported only when it is called."""

from __future__ import annotations

import sys
from pathlib import PurePath

import click

import webhook
from webhook.cli.failing import fail
from webhook.cli.lazy import LazyGroup
from webhook.errors import FairleadError

# Short helps stand here, so that `fairlead --help` imports no subcommand.
COMMANDS = {
    "audit": "What policies under Audit would have done, by namespace.",
    "certs": "The webhook's certificates: how they are, and new ones.",
    "check": "Validate policies; with nodes, find those that leave none.",
    "completion": "Print the shell code that completes this command.",
    "controller": "Run the controller of Runs.",
    "demo": "Show the webhook at work, with or without a cluster.",
    "diff": "Which pods other policies would move, reject or leave without a node.",
    "disable": "Send no pods to the webhook for a time.",
    "doctor": "What is wrong with an installation, and what to do.",
    "enable": "Send pods to the webhook again.",
    "exceptions": "Which exceptions are in force, until when, and who passed.",
    "explain": "Why a pod gets what it gets, policy by policy and field by field.",
    "export": "Print policies in a form that needs no webhook.",
    "guard": "Print admission policies that hold what the webhook alone cannot.",
    "install": "Put Fairlead into a cluster, or bring it up to date.",
    "mutate": "What pods would become: of files, or live ones.",
    "policies": "Which policies are in force, and what they touch.",
    "run": "Runs: what they would become, how they are, and what they write.",
    "sandbox": "A real Kubernetes control plane on this machine.",
    "schema": "Print the JSON Schema of policy files, for editors.",
    "serve": "Run the admission webhook.",
    "sources": "The marks by which pods of each system are known.",
    "test": "Run policy tests from files.",
    "uninstall": "Take Fairlead out of a cluster.",
    "version": "Print the version of this command.",
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    table=COMMANDS,
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

    \b
    In a cluster, also as `kubectl fairlead ...`:
      fairlead explain pod NAME                   why is this pod where it is?
      fairlead policies                           what is in force, and what does it touch?
      fairlead doctor                             is anything wrong?
    """


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 findings or failure, 2 wrong usage."""
    # kubectl finds its plugins by their names; help then shows how one was called.
    plugin = PurePath(sys.argv[0]).name.startswith("kubectl-")
    try:
        fairlead(
            prog_name="kubectl fairlead" if plugin else "fairlead",
            complete_var="_FAIRLEAD_COMPLETE",
        )
    except FairleadError as error:
        fail(error, 1)
