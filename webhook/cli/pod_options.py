"""The options of commands that decide on pods from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

_PATH = click.Path(exists=True, path_type=Path, allow_dash=True)
_FILE = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)

_OPTIONS = (
    click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        required=True,
        type=_PATH,
        metavar="PATH",
        help="Objects that make pods, YAML or JSON: a file, a folder with all in it, or - for "
        "standard input. Repeatable.",
    ),
    click.option(
        "--policies",
        multiple=True,
        required=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="A folder of policies, or a file. Repeatable: all of them are one set.",
    ),
    click.option(
        "-n",
        "--namespace",
        default="default",
        show_default=True,
        metavar="NAME",
        help="The namespace of objects that name none.",
    ),
    click.option(
        "--namespaces",
        "namespaces_file",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="What `kubectl get ns,priorityclass -o yaml` prints: labels that policies ask for, "
        "and the default PriorityClass. Such objects may also be among those of -f.",
    ),
    click.option(
        "--nodes",
        "nodes_file",
        type=_FILE,
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints: on which of them may the pods "
        "run?",
    ),
)


def pod_options(command: _F) -> _F:
    """Give a command the parameters filenames, policies, namespace, namespaces_file, nodes_file."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
