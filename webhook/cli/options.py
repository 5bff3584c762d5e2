"""Options that several commands share, and their types."""

from __future__ import annotations

import enum
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import click

from webhook.placement.fallback import MOST_DISRUPTIONS, History, assumed
from webhook.settings import Number
from webhook.times import parse_span

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from webhook.kube.client import Client
    from webhook.policy.policy_set import PolicySet

T = TypeVar("T")
_CONTEXT: Final = "kubeconfig.context"


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
    """Converts to a path that exists, or to CLUSTER.

    `cure`: what to do instead, of a command that reads no cluster.
    """

    def __init__(self, *, folders: bool, cure: str = "") -> None:
        self.name = "path"
        self._path = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=folders)
        self._cure = cure

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Where:
        """Parse a path as click.Path does, or the word `cluster`."""
        if isinstance(value, Cluster):
            return value
        if str(value) == CLUSTER.value and not self._cure:
            return CLUSTER
        if str(value) == CLUSTER.value and not Path(CLUSTER.value).exists():
            self.fail(f"this command reads no cluster; {self._cure}", param, ctx)
        found: Path = self._path.convert(str(value), param, ctx)
        return found


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


class ClassHistory(click.ParamType[tuple[str, int, timedelta | None]]):
    """What happened to pods on one class: CLASS=DISRUPTIONS[,pending=DURATION]."""

    name = "history"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int, timedelta | None]:
        """Parse the value; click reports an error."""
        if isinstance(value, tuple):
            return value
        name, equal, rest = str(value).partition("=")
        count, comma, pending = rest.partition(",pending=")
        try:
            if name and equal and count.isdecimal() and int(count) <= MOST_DISRUPTIONS:
                return name, int(count), parse_span(pending) if comma else None
            wanted = "CLASS=COUNT[,pending=TIME]"
        except ValueError as error:
            wanted = f"CLASS=COUNT[,pending=TIME] ({error})"
        what = f"want {wanted}, of 0 to {MOST_DISRUPTIONS} lost nodes, such as spot=3"
        return self.fail(f"{value!r}: {what}", param, ctx)


HISTORY: Final[dict[str, Any]] = {
    "multiple": True,
    "type": ClassHistory(),
    "metavar": "CLASS=COUNT[,pending=TIME]",
    "help": "As if so many nodes of a class had been lost under the pods until now, and they had "
    "waited so long for one, such as spot=3 or spot=0,pending=25m. Policies with a fallback "
    "depend on it; only pods of Fairlead's own controller have a history. Repeatable.",
}


def history_of(
    given: Sequence[tuple[str, int, timedelta | None]], *sets: PolicySet
) -> History | None:
    """Return the history of the option; None if it is not given.

    Raises UsageError for a class that is given twice, or that no set has.
    """
    by_class = {name: (count, pending) for name, count, pending in given}
    if len(by_class) < len(given):
        raise click.UsageError("--history: a class is given twice; write all of it once")
    classes = sorted({name for each in sets for name in each.classes})
    for name in by_class:
        if name not in classes:
            what = f"there is no capacity class {name!r} ({', '.join(classes) or 'none at all'})"
            raise click.UsageError(f"--history: {what}")
    return assumed(datetime.now(UTC), by_class) if by_class else None


def text(span: timedelta) -> str:
    """Return the span in the largest whole units: 15 min, 1 h 30 min, 45 s."""
    seconds = round(span.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


class Kubeconfig(NamedTuple):
    """The cluster that a command reads: --kubeconfig and --context; empty if not given."""

    given: Path | None = None
    context: str = ""

    @property
    def file(self) -> Path | None:
        """The file, else ~/.kube/config; None if $KUBECONFIG is set, or the file does not exist."""
        usual = Path.home() / ".kube" / "config"
        found = usual if not os.environ.get("KUBECONFIG") and usual.is_file() else None
        return self.given or found

    def client(self) -> Client:
        """Return a client of that cluster, as an asynchronous context manager."""
        # The import of the Kubernetes client takes time; --help does not need it.
        from webhook.kube.client import connect

        return connect(self.file, context=self.context)

    def namespace(self) -> str:
        """Return the namespace of the context. Raises ClusterError."""
        from webhook.kube.config import default_namespace

        return default_namespace(self.file, context=self.context)

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a question, which gets a client of that cluster."""
        import asyncio

        async def answer() -> T:
            async with self.client() as client:
                return await question(client)

        return asyncio.run(answer())


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """--kubeconfig and --context, as kubectl calls them: one parameter, a Kubeconfig."""
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=lambda ctx, _, value: Kubeconfig(value, ctx.meta[_CONTEXT]),
        metavar="FILE",
        help="The cluster. Default: $KUBECONFIG, else ~/.kube/config, else the cluster that this "
        "pod runs in.",
    )
    context = click.option(
        "--context",
        default="",
        is_eager=True,  # read before --kubeconfig, which takes it
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.update({_CONTEXT: value}),
        metavar="NAME",
        help="A context of the kubeconfig.",
    )
    return kubeconfig(context(function))


def namespace_option(meaning: str, default: str = "") -> Callable[[Any], Any]:
    """-n, --namespace; `meaning` is its help."""
    return click.option(
        "-n",
        "--namespace",
        default=default,
        show_default=bool(default),
        metavar="NAME",
        help=meaning,
    )


def policies_option(
    meaning: str,
    name: str = "policies",
    *,
    kind: click.ParamType[Any] | None = None,
    required: bool = False,
) -> Callable[[Any], Any]:
    """--policies, repeatable; without a `kind` of its own the word `cluster` is allowed."""
    return click.option(
        "--policies",
        name,
        multiple=True,
        required=required,
        type=kind or WhereType(folders=True),
        metavar="PATH",
        help=meaning,
    )


# Of commands that read Runs.
filenames_option: Final[Callable[[Any], Any]] = click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    type=click.Path(exists=True, path_type=Path, allow_dash=True),
    metavar="PATH",
    help="Runs, YAML or JSON: a file, a folder with all in it, or - for standard input. "
    "Repeatable.",
)


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
