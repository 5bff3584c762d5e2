"""Options that several commands share, and their types."""

from __future__ import annotations

import enum
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from webhook.settings import Number
from webhook.times import parse_span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.kube.client import Client


class Cluster(enum.Enum):
    """The word `cluster` instead of a path; a file of that name is ./cluster."""

    CLUSTER = "cluster"

    def __str__(self) -> str:
        return self.value


CLUSTER: Final = Cluster.CLUSTER
Where: TypeAlias = Path | Cluster


def paths_of(policies: Sequence[Where]) -> list[Path]:
    """Return the paths of --policies; none for the word `cluster`. Raises UsageError for both."""
    paths = [each for each in policies if each is not CLUSTER]
    if paths and len(paths) < len(policies):
        raise click.UsageError("--policies: give cluster or paths, not both")
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
        found: Path = self._path.convert(str(value), param, ctx)
        return found


class OfflinePath(click.Path):
    """A path that exists, for a command that reads no cluster; `cure` is what to do instead."""

    def __init__(self, cure: str, *, folders: bool) -> None:
        super().__init__(exists=True, path_type=Path, dir_okay=folders)
        self._cure = cure

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a path as click.Path does; the word `cluster` fails with the cure."""
        if str(value) == CLUSTER.value and not Path(value).exists():
            self.fail(f"this command reads no cluster; {self._cure}", param, ctx)
        return super().convert(value, param, ctx)


class Duration(click.ParamType[timedelta]):
    """A time span within inclusive bounds."""

    name = "duration"

    def __init__(self, least: timedelta, most: timedelta) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Parse the value; click reports an error."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_span(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self._least <= span <= self._most:
            self.fail(
                f"{value} is out of range: want {text(self._least)} to {text(self._most)}",
                param,
                ctx,
            )
        return span


def text(span: timedelta) -> str:
    """Return the span in the largest whole units: 15 min, 1 h 30 min, 45 s."""
    seconds = round(span.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """--kubeconfig and --context, as kubectl calls them."""
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The cluster. Default: $KUBECONFIG, else ~/.kube/config, else the cluster that this "
        "pod runs in.",
    )
    context = click.option(
        "--context", default="", metavar="NAME", help="A context of the kubeconfig."
    )
    return kubeconfig(context(function))


def timeout_option(function: Callable[..., None]) -> Callable[..., None]:
    """--timeout, of commands that wait for a cluster."""
    return click.option(
        "--timeout",
        type=Number(1, 86400),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        help="Maximum time to wait.",
    )(function)


def client_of(kubeconfig: Path | None, context: str) -> Client:
    """Return a client of that cluster, as an asynchronous context manager."""
    # The import of the Kubernetes client takes time; --help does not need it.
    from webhook.kube.client import connect

    return connect(kubeconfig or usual_kubeconfig(), context=context)


def usual_kubeconfig() -> Path | None:
    """~/.kube/config; None if $KUBECONFIG is set, or the file does not exist."""
    usual = Path.home() / ".kube" / "config"
    return usual if not os.environ.get("KUBECONFIG") and usual.is_file() else None
