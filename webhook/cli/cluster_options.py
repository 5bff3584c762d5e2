"""The options that tell which cluster is meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.kube.client import Client


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


def client_of(kubeconfig: Path | None, context: str) -> Client:
    """A client of that cluster, to be entered."""
    # The Kubernetes client takes its time to be imported; --help does without.
    from webhook.kube.client import connect

    return connect(kubeconfig or usual_kubeconfig(), context=context)


def usual_kubeconfig() -> Path | None:
    """Where kubectl looks last; None if $KUBECONFIG is set, or there is no such file."""
    usual = Path.home() / ".kube" / "config"
    return usual if not os.environ.get("KUBECONFIG") and usual.is_file() else None
