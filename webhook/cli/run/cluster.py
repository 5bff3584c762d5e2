"""Connect to the cluster, and find a Run in it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from webhook import names
from webhook.cli.options import cluster_options, namespace_option
from webhook.errors import PassOver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

T = TypeVar("T")


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for cluster and namespace, with the names that kubectl uses."""
    meaning = "The Run's namespace. Default: that of the kubeconfig's context."
    decorated: Callable[..., None] = namespace_option(meaning)(cluster_options(function))
    return decorated


def pods_path(namespace: str) -> str:
    """Return the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


async def list_pods(
    client: Client, namespace: str, run: Mapping[str, Any], keep: Callable[[dict[str, Any]], T]
) -> list[T]:
    """Return the pods of a Run, as they are kept. Raises ClusterError."""
    query = {"labelSelector": f"{names.RUN_UID}={run['metadata']['uid']}"}
    return (await client.list(pods_path(namespace), keep, query=query)).items


async def fetch_run(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return the raw Run. Raises ClusterError; if there is none, NoSuchObject with the cure."""
    # Its table of kinds takes time to be imported; --help does not need it.
    from webhook.cli.live.live_objects import NoSuchObject, find
    from webhook.installation.object_kinds import Kind

    kind = Kind(names.API_VERSION, names.RUN_KIND, names.RUNS)
    try:
        return (await find(client, kind, namespace, name, others=True)).value
    except NoSuchObject:
        with PassOver(HTTPStatus.NOT_FOUND):
            await client.list(kind.path(namespace), lambda _: None)
            raise
    raise NoSuchObject(
        f"this cluster has no Runs: the CustomResourceDefinition {names.RUNS}.{names.GROUP} is not "
        "installed. Is it the right cluster? Check with: kubectl config current-context"
    )
