"""The fairlead command: one module for each subcommand, imported when it is called."""

from __future__ import annotations

import sys
from pathlib import PurePath

import click

import webhook
from webhook.cli.color import color_option
from webhook.cli.exit_codes import FAILED, UNKNOWN, errors_exit
from webhook.cli.lazy import LazyGroup
from webhook.errors import InvalidName

# Short helps stand here, so that `fairlead --help` imports no subcommand.
COMMANDS = {
    "audit": "Show what policies under Audit would have done, by namespace.",
    "certs": "Show or rotate the webhook's certificates.",
    "check": "Validate policies, also against nodes.",
    "completion": "Print the shell code that completes this command.",
    "controller": "Run the controller of Runs.",
    "demo": "Show the webhook at work, with or without a cluster.",
    "diff": "Show which pods a change of policies moves, rejects or leaves without a node.",
    "disable": "Stop sending pods to the webhook for a time.",
    "doctor": "Find problems of an installation, each with its fix.",
    "enable": "Send pods to the webhook again.",
    "exceptions": "List exceptions: their end, and the pods that used them.",
    "explain": "Explain a pod's placement, policy by policy and field by field.",
    "export": "Print policies in a form that works without the webhook.",
    "guard": "Print admission policies that enforce what the webhook cannot.",
    "install": "Install or upgrade Fairlead in a cluster.",
    "mutate": "Show what policies change in pods, from files or a cluster.",
    "pods": "List live pods to restart: placed otherwise, unplaced, without a node.",
    "policies": "List the policies in force, and the pods that they match.",
    "run": "Preview, convert, inspect and log Runs.",
    "sandbox": "Run a real Kubernetes control plane on this machine.",
    "schema": "Print the JSON Schema of policy files, for editors.",
    "serve": "Run the admission webhook.",
    "simulate": "Compare policies by what becomes of a Run on nodes that come and go.",
    "sources": "List the labels by which Fairlead recognizes each system's pods.",
    "test": "Run policy tests from files.",
    "ui": "Try policies in a browser.",
    "uninstall": "Remove Fairlead from a cluster.",
    "version": "Print the version of this command.",
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@color_option()
@click.version_option(webhook.__version__, prog_name="fairlead")
def fairlead() -> None:
    """Place machine-learning runs on Kubernetes.

    \b
    Start here:
      fairlead demo                                show the webhook at work, without a cluster
      fairlead check policies/                     validate policies
      fairlead mutate -f pod.yaml --policies DIR   show what policies change in this pod
      fairlead explain -f pod.yaml --policies DIR  show the reasons

    \b
    In a cluster, also as `kubectl fairlead ...`:
      fairlead explain pod NAME                    explain the placement of a pod
      fairlead policies                            list the policies in force
      fairlead doctor                              find problems of the installation
    """


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 findings or failure, 2 wrong usage."""
    # kubectl finds its plugins by their names; help then shows how one was called.
    plugin = PurePath(sys.argv[0]).name.startswith("kubectl-")
    with errors_exit(FAILED), errors_exit(UNKNOWN, InvalidName):
        fairlead(
            prog_name="kubectl fairlead" if plugin else "fairlead",
            complete_var="_FAIRLEAD_COMPLETE",
        )
