"""The fairlead command: one module for each subcommand, imported when it is called."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import PurePath
from typing import Final

import click

from webhook import __version__
from webhook.cli.color import color_option
from webhook.cli.exit_codes import errors_exit, streams_exit
from webhook.cli.lazy import HIDDEN, LazyGroup

# Short helps stand here, so that `fairlead --help` imports no subcommand.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Policies": {
        "check": "Validate policies, also against nodes.",
        "test": "Run policy tests from files.",
        "diff": "Show which pods a change of policies moves or rejects.",
        "preview": "Show what policies change in pods, from files or a cluster.",
        "explain": "Explain a pod's placement, policy by policy and field by field.",
        "policy": "List policies in force, exceptions, sources, and what Audit would do.",
    },
    "Runs": {
        "run": "Create, list, follow, suspend and delete Runs.",
    },
    "Cluster": {
        "pods": "List live pods to restart: placed otherwise, or without a node.",
        "doctor": "Find problems of an installation, each with its fix.",
        "webhook": "Show, disable or enable the webhook; its certificates.",
        "install": "Install or upgrade Fairlead in a cluster.",
        "uninstall": "Remove Fairlead from a cluster.",
    },
    "Try it": {
        "demo": "Show the webhook at work, with or without a cluster.",
        "sandbox": "Run a real Kubernetes control plane on this machine.",
        "ui": "Try policies in a browser.",
    },
    "Other": {
        "generate": "Print schemas, guards and policies for editors and kubectl.",
        "completion": "Print the shell code that completes this command.",
        "version": "Print the version of this command.",
    },
    HIDDEN: {
        "help": "Print the help of a command.",
        # The image's entry points, which manifests name.
        "controller": "Run the controller of Runs.",
        "serve": "Run the admission webhook.",
    },
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    sections=SECTIONS,
    elsewhere={"help": f"{__name__}.short_help:help_command"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@color_option()
@click.version_option(__version__, prog_name="fairlead", message="%(prog)s %(version)s")
def fairlead() -> None:
    """Place machine-learning runs on Kubernetes; also as `kubectl fairlead`.

    
    You write policies:   fairlead preview -f pod.yaml --policies policies/
    You train models:     fairlead run create NAME --image IMAGE -- python train.py
    You run the cluster:  fairlead install, then fairlead doctor
    No cluster yet:       fairlead demo
    """


def main() -> None:
    """Run the command line. Exit codes are those of `exit_codes.MEANINGS`."""
    # A command keeps what it makes until its end. With Python's own 700 it collects hundreds of
    # times while modules are imported, for a twentieth of the time of `check`.
    gc.set_threshold(10_000)
    # No plugin of pydantic changes what a document may have. To look for plugins it reads the
    # metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # kubectl finds its plugins by their names; help then shows how one was called.
    plugin = PurePath(sys.argv[0]).name.startswith("kubectl-")
    with streams_exit(), errors_exit():
        fairlead(
            prog_name="kubectl fairlead" if plugin else "fairlead",
            complete_var="_FAIRLEAD_COMPLETE",
        )
