"""Find Runs in a cluster, and their pods."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError, PassOver, WrongUsage
from webhook.run_client.submit import runs_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

T = TypeVar("T")


class Targets(NamedTuple):
    """Which Runs: of a namespace, or of all if it is empty; of these names or labels, or all."""

    namespace: str
    names: tuple[str, ...]
    selector: str

    @property
    def are_chosen(self) -> bool:
        """Whether names or labels choose some."""
        # The API server takes a selector of spaces for all.
        return bool(self.names or self.selector.strip())


async def find_runs(client: Client, targets: Targets) -> list[dict[str, Any]]:
    """Return the raw Runs. Raises ClusterError, WrongUsage for an invalid selector, and
    NoSuchObject for a name without one.
    """
    if targets.names:
        return [await fetch_run(client, targets.namespace, each) for each in targets.names]
    if targets.selector and not targets.selector.strip():
        what = f"the selector {targets.selector!r} is blank, which selects all"
        raise WrongUsage(f"{what}: name labels, or leave it out")
    query = {"labelSelector": targets.selector} if targets.selector else {}
    path = runs_path(targets.namespace)
    try:
        return (await client.list(path, lambda raw: raw, query=query)).items
    except ClusterError as error:
        if not query or error.status != HTTPStatus.BAD_REQUEST:
            raise
        wanted = "labels, such as team=vision,env!=dev or 'env in (dev, test)'"
        what = f"--selector {targets.selector!r}: {error.words or error}"
        raise WrongUsage(f"{what}; want {wanted}") from None


def pods_path(namespace: str) -> CollectionPath:
    """Return the pods of a namespace."""
    return CollectionPath("v1", "pods", namespace)


async def list_pods(
    client: Client, namespace: str, run: Mapping[str, Any], keep: Callable[[dict[str, Any]], T]
) -> list[T]:
    """Return the pods of a Run, as they are kept. Raises ClusterError."""
    query = {"labelSelector": f"{names.RUN_UID}={run['metadata']['uid']}"}
    return (await client.list(pods_path(namespace), keep, query=query)).items


async def fetch_run(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return the raw Run. Raises ClusterError; if there is none, NoSuchObject with the cure."""
    # Its table of kinds takes time to be imported; --help does not need it.
    from webhook.installation.object_kinds import Kind
    from webhook.questions.live.live_objects import NoSuchObject, find

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
