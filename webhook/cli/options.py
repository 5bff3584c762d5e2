"""Options that several commands share, and their types."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from webhook.cli.output import print_aside
from webhook.kube.kubeconfig import Kubeconfig
from webhook.progress import Lines
from webhook.questions.completion import NAMESPACE, SELECTOR, complete_contexts
from webhook.questions.where import WhereType
from webhook.settings import TargetOption
from webhook.times import parse_span

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")
_CONTEXT: Final = "kubeconfig.context"
_TIMEOUT: Final = "kubeconfig.request-timeout"
_VERBOSE: Final = "kubeconfig.verbose"


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
    """--kubeconfig, --context, --request-timeout and -v, as kubectl calls them: one parameter, a
    Kubeconfig."""
    kubeconfig = click.option(
        "--kubeconfig",
        cls=TargetOption,
        type=click.Path(dir_okay=False, path_type=Path),
        callback=lambda ctx, _, value: Kubeconfig(
            value,
            ctx.meta[_CONTEXT],
            ctx.meta[_TIMEOUT].total_seconds(),
            print_aside if ctx.meta[_VERBOSE] else None,
        ),
        metavar="FILE",
        help="The cluster. Default: $KUBECONFIG, else ~/.kube/config, else the cluster that this "
        "pod runs in.",
    )
    context = click.option(
        "--context",
        cls=TargetOption,
        default="",
        is_eager=True,  # read before --kubeconfig, which takes it
        expose_value=False,
        callback=_keep(_CONTEXT),
        shell_complete=complete_contexts,
        metavar="NAME",
        help="A context of the kubeconfig.",
    )
    timeout = click.option(
        "--request-timeout",
        type=Duration(timedelta(seconds=1), timedelta(hours=1)),
        default="30s",
        is_eager=True,
        expose_value=False,
        callback=_keep(_TIMEOUT),
        metavar="TIME",
        help="How long one request to the cluster may take.",
        show_default=True,
    )
    verbose = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_keep(_VERBOSE),
        help="Print each request to the cluster on stderr, with its status and time.",
    )
    return kubeconfig(context(timeout(verbose(function))))


def _keep(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return what keeps the value of an option for the one that takes them all."""
    return lambda ctx, _, value: ctx.meta.update({key: value})


def namespace_option(meaning: str, default: str = "") -> Callable[[Any], Any]:
    """-n, --namespace; `meaning` is its help."""
    return click.option(
        "-n",
        "--namespace",
        **NAMESPACE,
        default=default,
        show_default=bool(default),
        help=meaning,
    )


class Scope(NamedTuple):
    """The namespaces that a command reads: that of -n, all of them by -A, or its default."""

    namespace: str
    everywhere: bool

    def within(self, kubeconfig: Kubeconfig) -> str:
        """Return the namespace, else that of the context; empty for all. Raises ClusterError."""
        return "" if self.everywhere else self.namespace or kubeconfig.namespace()


def scope_options(
    objects: str, *, cluster_wide: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """-n and -A, of all commands that read namespaces of a cluster: one parameter, `scope`.

    objects:      what is read there, for the help
    cluster_wide: without either, all namespaces are read; else that of the kubeconfig's context
    """
    usual = "all namespaces" if cluster_wide else "that of the kubeconfig's context"

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_scope(namespace: str, all_namespaces: bool, **given: Any) -> Any:
            if all_namespaces and namespace:
                raise click.UsageError("give -n NAME, or -A for all namespaces; not both")
            return command(scope=Scope(namespace, all_namespaces), **given)

        everywhere = click.option(
            "-A", "--all-namespaces", is_flag=True, help=f"{objects} of all namespaces."
        )
        named = namespace_option(f"{objects} of this namespace. Default: {usual}.")
        decorated: Callable[..., Any] = named(everywhere(with_scope))
        return decorated

    return decorate


def selector_option(objects: str) -> Callable[[Any], Any]:
    """-l, --selector, of all commands that list objects of a cluster."""
    return click.option(
        "-l", "--selector", **SELECTOR, help=f"{objects} with these labels, such as team=vision."
    )


def policies_option(
    meaning: str,
    name: str = "policies",
    *,
    required: bool = False,
) -> Callable[[Any], Any]:
    """--policies, repeatable: paths, or the word `cluster`."""
    return click.option(
        "--policies",
        name,
        multiple=True,
        required=required,
        type=WhereType(folders=True),
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


def progress_option(
    *, only_terminals: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """-q, --quiet, of commands that take long: one parameter, the `progress` on stderr.

    only_terminals: there is no progress in a pipe
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_progress(*arguments: Any, quiet: bool, **given: Any) -> Any:
            steps = not quiet and (sys.stderr.isatty() or not only_terminals)
            progress = Lines(sys.stderr, steps=steps)
            return command(*arguments, progress=progress, **given)

        option = click.option(
            "-q", "--quiet", is_flag=True, help="Print no progress; notes and errors stay."
        )
        decorated: Callable[..., Any] = option(with_progress)
        return decorated

    return decorate


def timeout_option(
    default: str | None = "5m", *, most: timedelta = timedelta(hours=24), more: str = ""
) -> Callable[[Any], Any]:
    """--timeout, of commands that wait for a cluster; None: without end. `more` ends its help."""
    return click.option(
        "--timeout",
        type=Duration(timedelta(seconds=1), most),
        default=default,
        show_default=default is not None,
        metavar="TIME",
        help=f"Maximum time to wait, such as 90s or 2h.{more}",
    )
