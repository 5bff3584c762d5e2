"""Where something is read from: a path, or the word `cluster`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


class Cluster(enum.Enum):
    """The cluster's own; a file of that name is ./cluster."""

    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value


CLUSTER: Final = Cluster.CLUSTER
Where: TypeAlias = Path | Cluster


def paths_of(policies: Sequence[Where]) -> list[Path]:
    """What --policies names; nothing where the cluster's are meant. Raises UsageError for both."""
    paths = [each for each in policies if each is not CLUSTER]
    if paths and len(paths) < len(policies):
        raise click.UsageError("--policies: give cluster, or paths; they are not one set")
    return paths


class WhereType(click.ParamType[Where]):
    """Converts to a path that exists, or to CLUSTER."""

    def __init__(self, *, folders: bool) -> None:
        self.name = "path"
        self._path = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=folders)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Where:
        """As click.Path does, unless it is the word."""
        if isinstance(value, Cluster):
            return value
        if str(value) == CLUSTER.value:
            return CLUSTER
        found: Path = self._path.convert(str(value), param, ctx)
        return found
