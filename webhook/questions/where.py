"""Where policies and nodes are read from: paths, or the cluster."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from webhook.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem


class Cluster(enum.Enum):
    """The word `cluster` instead of a path; a file of that name is ./cluster."""

    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value


CLUSTER: Final = Cluster.CLUSTER
Where: TypeAlias = Path | Cluster


def paths_of(policies: Sequence[Where]) -> list[Path]:
    """Return the paths of --policies; none for the word `cluster`. Raises WrongUsage for both."""
    paths = [path for path in policies if path is not CLUSTER]
    if paths and len(paths) < len(policies):
        raise WrongUsage("--policies: give cluster or paths, not both")
    return paths


class WhereType(click.ParamType[Where]):
    """Converts to a path that exists, or to CLUSTER."""

    def __init__(self, *, folders: bool) -> None:
        self.name = "path"
        self._path = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=folders)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Where:
        """Parse a path as click.Path does, or the word `cluster`."""
        if isinstance(value, Cluster):
            return value
        if str(value) == CLUSTER.value:
            return CLUSTER
        path: Path = self._path.convert(str(value), param, ctx)
        return path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete files; or return the word, if no file begins so."""
        from click.shell_completion import CompletionItem

        # A shell takes either: words of ours in place of its files.
        is_word = incomplete and CLUSTER.value.startswith(incomplete)
        if is_word and not any(Path().glob(f"{incomplete}*")):
            return [CompletionItem(CLUSTER.value)]
        return self._path.shell_complete(ctx, param, incomplete)
