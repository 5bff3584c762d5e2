"""Connect to the cluster, and find a Run in it."""

from __future__ import annotations

import asyncio
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from webhook import names
from webhook.cli.options import Kubeconfig, cluster_options, namespace_option
from webhook.cli.run.submit import runs_path
from webhook.errors import FairleadError, PassOver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from click.shell_completion import CompletionItem

    from webhook.kube.client import Client

T = TypeVar("T")
# Seconds that a person waits for names after Tab.
_COMPLETING: Final = 3.0


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for cluster and namespace, with the names that kubectl uses."""
    meaning = "The Run's namespace. Default: that of the kubeconfig's context."
    decorated: Callable[..., None] = namespace_option(meaning)(cluster_options(function))
    return decorated


class RunName(click.ParamType[str]):
    """The name of a Run, which the shell completes by those of the namespace."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin so; none if the cluster does not answer soon."""
        from click.shell_completion import CompletionItem

        del param
        kubeconfig = ctx.params.get("kubeconfig") or Kubeconfig()

        async def look(client: Client) -> list[str]:
            async with asyncio.timeout(_COMPLETING):
                path = runs_path(ctx.params.get("namespace") or kubeconfig.namespace())
                return (await client.list(path, lambda raw: str(raw["metadata"]["name"]))).items

        try:
            found = kubeconfig.ask(look)
        except (FairleadError, TimeoutError):
            return []
        return [CompletionItem(each) for each in found if each.startswith(incomplete)]


def several_options(function: Callable[..., None]) -> Callable[..., None]:
    """NAME..., -l and -A beside the options for cluster and namespace: one parameter `targets`,
    which `find_runs` takes.
    """

    @wraps(function)
    def with_targets(
        names: tuple[str, ...], selector: str, all_namespaces: bool, namespace: str, **others: Any
    ) -> None:
        if all_namespaces and (names or namespace):
            raise click.UsageError("--all-namespaces excludes names and --namespace")
        if selector and names:
            raise click.UsageError("give names, or --selector")
        within = "" if all_namespaces else namespace or others["kubeconfig"].namespace()
        function(targets=Targets(within, names, selector), **others)

    for option in (
        click.option("-A", "--all-namespaces", is_flag=True, help="The Runs of all namespaces."),
        click.option(
            "-l", "--selector", default="", metavar="LABELS", help="Only Runs with these labels."
        ),
        click.argument("names", nargs=-1, type=RunName(), metavar="[NAME]..."),
    ):
        with_targets = option(with_targets)
    decorated: Callable[..., None] = target_options(with_targets)
    return decorated


class Targets(NamedTuple):
    """Which Runs: of a namespace, or of all if it is empty; of these names or labels, or all."""

    namespace: str
    names: tuple[str, ...]
    selector: str

    @property
    def are_chosen(self) -> bool:
        """Whether names or labels choose some."""
        return bool(self.names or self.selector)


async def find_runs(client: Client, targets: Targets) -> list[dict[str, Any]]:
    """Return the raw Runs. Raises ClusterError, and NoSuchObject for a name without one."""
    if targets.names:
        return [await fetch_run(client, targets.namespace, each) for each in targets.names]
    query = {"labelSelector": targets.selector} if targets.selector else {}
    path = runs_path(targets.namespace)
    return (await client.list(path, lambda raw: raw, query=query)).items


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
