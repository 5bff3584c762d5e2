"""The options of `fairlead serve`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from webhook import names
from webhook.cli.number import Number

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

_FILE = click.Path(dir_okay=False, path_type=Path)
# A DNS subdomain, as the API server wants it: nothing else may become part of a path or a query.
_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_PART}(\.{_PART})*")


class ObjectName(click.ParamType[tuple[str, str]]):
    """Converts to (namespace, name); the namespace is "" if it is not said."""

    name = "[NAMESPACE/]NAME"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Split it, or fail with what is allowed."""
        if isinstance(value, tuple):
            return value
        namespace, slash, name = str(value).rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _NAME.fullmatch(namespace)):
            self.fail(
                f"{value!r}: want NAME or NAMESPACE/NAME, of lower case letters, digits, '-', '.'",
                param,
                ctx,
            )
        return namespace, name


def _without_namespace(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The name of an object that is in no namespace; it may be left out."""
    if not value:
        return ""
    namespace, name = ObjectName().convert(value, parameter, context)
    if namespace:
        raise click.BadParameter(f"{value!r}: it is in no namespace; want NAME")
    return name


_OPTIONS: Final = (
    click.option(
        "--policies",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder of policy files, read with its sub-folders and watched; a "
        "mounted ConfigMap too.",
    ),
    click.option(
        "--policies-from-cluster",
        is_flag=True,
        help="Instead: watch the cluster's PlacementPolicies, CapacityClasses and "
        "PlacementExceptions.",
    ),
    click.option(
        "--kubeconfig",
        type=_FILE,
        metavar="FILE",
        help="The cluster whose namespaces and priority classes are watched. Default: $KUBECONFIG, "
        "else the cluster that this pod runs in.",
    ),
    click.option(
        "--namespaces",
        "cluster_file",
        type=_FILE,
        metavar="FILE",
        help="Without a cluster: Namespace and PriorityClass objects as YAML, read once.",
    ),
    click.option(
        "--host", default="", help="Address to listen on. Default: every one, IPv4 and IPv6."
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8443,
        show_default=True,
        help="HTTPS port, for the API server. 0 takes a free one; the log says which.",
    ),
    click.option(
        "--health-port",
        type=click.IntRange(0, 65535),
        default=8081,
        show_default=True,
        help="Plain HTTP port, for /livez, /readyz and /metrics.",
    ),
    click.option("--cert", type=_FILE, metavar="FILE", help="Certificate chain as PEM, watched."),
    click.option("--key", type=_FILE, metavar="FILE", help="Its private key as PEM, watched."),
    click.option(
        "--tls-secret",
        type=ObjectName(),
        help="Secret of type kubernetes.io/tls to serve with, watched: a new certificate is on the "
        "wire at once. Default namespace: the pod's own.",
    ),
    click.option(
        "--service",
        type=ObjectName(),
        default=names.WEBHOOK,
        show_default=True,
        help="The Service by which the API server reaches this: its certificate has to be for "
        "NAME.NAMESPACE.svc. Default namespace: that of the --tls-secret, or the pod's own.",
    ),
    click.option(
        "--webhook-configuration",
        default="",
        metavar="NAME",
        callback=_without_namespace,
        help="MutatingWebhookConfiguration to watch: ready only while the certificate "
        "verifies under "
        "the caBundle of each entry for --service. Without it, or such an entry, the ca.crt of the "
        "--tls-secret is taken.",
    ),
    click.option(
        "--tls-min-version",
        type=click.Choice(["1.3", "1.2"]),
        default="1.3",
        show_default=True,
        help="Lowest version of TLS to speak.",
    ),
    click.option(
        "--client-ca",
        type=_FILE,
        metavar="FILE",
        help="Authorities as PEM, watched: only clients with a certificate by one "
        "of them are let in.",
    ),
    click.option(
        "--client-name",
        "client_names",
        multiple=True,
        metavar="NAME",
        help="With --client-ca: let in only whose certificate has this common name or DNS "
        "name; any "
        "other is told 403. Repeatable. Wanted where the authority vouches for others as well.",
    ),
    click.option(
        "--self-signed",
        is_flag=True,
        help="For development: make an authority and a certificate for localhost, "
        "for this process.",
    ),
    click.option(
        "--name",
        "extra_names",
        multiple=True,
        metavar="NAME",
        help="With --self-signed: one more DNS name or IP address to be reached by. Repeatable.",
    ),
    click.option(
        "--ca-out",
        type=_FILE,
        metavar="FILE",
        help="With --self-signed: write the authority's certificate here, for the API server's "
        "caBundle.",
    ),
    click.option(
        "--grace",
        type=Number(0, 3600),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="After SIGTERM, how long to answer on. Longer than the cluster takes to send its "
        "calls "
        "elsewhere (a second or two), for a refused connection is not retried; and less than the "
        "pod's terminationGracePeriodSeconds.",
    ),
    click.option(
        "--max-in-flight",
        type=click.IntRange(min=1),
        default=600,
        show_default=True,
        help="With so many requests unanswered, tell the next to come again in a second. (One API "
        "server has at most 200 writes in flight unless told otherwise; this is enough for three.)",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        help="With so many connections, one makes room for the next: the one that has waited "
        "longest at the stage with most above its share. More than --max-in-flight; 60 KB of "
        "memory each.",
    ),
    click.option(
        "--poll-interval",
        type=Number(0.05, 3600),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help="How often policies and certificates are looked at.",
    ),
    click.option(
        "--default-toleration-seconds",
        type=click.IntRange(min=0),
        default=300,
        show_default=True,
        metavar="SECONDS",
        help="What the API server gives pods for not-ready and unreachable nodes, which is "
        "nobody's "
        "word: its --default-not-ready-toleration-seconds.",
    ),
    click.option(
        "--nodes",
        is_flag=True,
        help="Watch the cluster's nodes, and warn of pods that none of them could admit. Needs the "
        "right to list and watch nodes, and about 2 MB of memory for a thousand of them.",
    ),
    click.option(
        "--events",
        is_flag=True,
        help="Write an Event on the workload whose pod is refused, or finds no node: at most one "
        "for each reason and hour. Needs the right to create Events in every namespace.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="At debug there is one line a decision.",
    ),
)


def serve_options(command: _F) -> _F:
    """Give a command every option; parameters are called as the options, but for a few."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
