"""Connect to the cluster, and find a Run in it."""

from __future__ import annotations

import difflib
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.cli.options import cluster_options, usual_kubeconfig
from webhook.errors import ClusterError, FairleadError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from webhook.kube.client import Client

_GROUP: Final = f"/apis/{names.API_VERSION}"


class NoSuchRun(FairleadError):
    """There is no Run of that name in that namespace; the text names where there may be one."""


class Target(NamedTuple):
    """The options about the cluster; empty if not given."""

    kubeconfig: Path | None
    context: str
    namespace: str


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for cluster and namespace, with the names that kubectl uses."""
    namespace = click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="The Run's namespace. Default: that of the kubeconfig's context.",
    )
    return namespace(cluster_options(function))


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[tuple[Client, str]]:
    """Yield a client of the cluster, and the namespace that is meant. Raises ClusterError."""
    # The Kubernetes client takes its time to be imported; --help does without.
    from webhook.kube.client import connect
    from webhook.kube.config import default_namespace

    kubeconfig = target.kubeconfig or usual_kubeconfig()
    namespace = target.namespace or default_namespace(kubeconfig, context=target.context)
    async with connect(kubeconfig, context=target.context) as client:
        yield client, namespace


def pods_path(namespace: str) -> str:
    """Return the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


async def fetch_run(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return the raw Run. Raises ClusterError; if there is none, NoSuchRun with the cure."""
    collection = f"{_GROUP}/namespaces/{namespace}/{names.RUNS}"
    try:
        return await client.get(f"{collection}/{name}")
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    try:
        here = await client.list(collection, lambda run: str(run["metadata"]["name"]))
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise NoSuchRun(
                f"this cluster has no Runs: the CustomResourceDefinition {names.RUNS}."
                f"{names.GROUP} is not installed. Is it the right cluster? Check with: "
                "kubectl config current-context"
            ) from None
        raise
    raise NoSuchRun(await _absent(client, namespace, name, here.items))


async def _absent(client: Client, namespace: str, name: str, here: list[str]) -> str:
    problem = f"run {name}: not found in namespace {namespace}"
    if near := difflib.get_close_matches(name, here, 3):
        return f"{problem}. Did you mean {' or '.join(near)}?"
    elsewhere: list[str] = []
    try:
        everywhere = await client.list(
            f"{_GROUP}/{names.RUNS}",
            lambda run: (str(run["metadata"]["namespace"]), str(run["metadata"]["name"])),
        )
        elsewhere = [place for place, one in everywhere.items if one == name]
    except ClusterError:
        pass  # the user may lack the permission to list all namespaces
    if elsewhere:
        return f"{problem}, but in {' and '.join(elsewhere)}: try -n {elsewhere[0]}"
    there = f"; there {'is' if len(here) == 1 else 'are'} {', '.join(sorted(here)[:5])}"
    return f"{problem}{there if here else ''}. kubectl get runs -A lists all that you may see"
