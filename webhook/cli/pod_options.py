"""The options of commands that decide on pods, from files or of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from webhook.cli.fail_on import CHOICES
from webhook.cli.where import WhereType

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

_PATH = click.Path(exists=True, path_type=Path, allow_dash=True)

_OPTIONS = (
    click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        type=_PATH,
        metavar="PATH",
        help="Objects that make pods, YAML or JSON: a file, a folder with all in it, or - for "
        "standard input. Repeatable. Instead of objects of a cluster.",
    ),
    click.option(
        "--policies",
        multiple=True,
        type=WhereType(folders=True),
        metavar="PATH",
        help="A folder of policies, or a file (repeatable: all of them are one set), or `cluster`: "
        "those that the cluster has. For live objects the default is cluster.",
    ),
    click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="The namespace of live objects (default: that of the kubeconfig's context), or with "
        "-f of objects that name none (default: default).",
    ),
    click.option(
        "--namespaces",
        "namespaces_file",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With -f, what `kubectl get ns,priorityclass -o yaml` prints: labels that policies "
        "ask for, and the default PriorityClass. Such objects may also be among those of -f.",
    ),
    click.option(
        "--nodes",
        "nodes",
        type=WhereType(folders=False),
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`: on which of these "
        "nodes may the pods run?",
    ),
    click.option(
        "--fail-on",
        "fail_on",
        multiple=True,
        type=click.Choice(CHOICES),
        help="What ends with exit code 1, beside a rejected pod. no-node: no node admits a pod "
        "(wants --nodes). warning: a pod gets a warning. unknown: something that policies ask for "
        "is not known. Repeatable.",
    ),
)


def pod_options(command: _F) -> _F:
    """Give a command the parameters of Chosen: which pods, under which policies."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
