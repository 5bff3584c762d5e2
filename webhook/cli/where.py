"""Where something is read from: a path, or the word `cluster`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Final, TypeAlias

import click


class Cluster(enum.Enum):
    """The cluster's own; a file of that name is ./cluster."""

    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value


CLUSTER: Final = Cluster.CLUSTER
Where: TypeAlias = Path | Cluster


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
