"""Options that name a cluster's Runs, and the completion of their names."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.options import cluster_options, namespace_option
from webhook.errors import FairleadError
from webhook.kube.kubeconfig import Kubeconfig
from webhook.run_client.find_runs import Targets
from webhook.run_client.submit import runs_path
from webhook.settings import ObjectName, TargetOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    from webhook.kube.client import Client

# Seconds that a person waits for names after Tab.
_COMPLETING: Final = 3.0


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for cluster and namespace, with the names that kubectl uses."""
    meaning = "The Run's namespace. Default: that of the kubeconfig's context."
    decorated: Callable[..., None] = namespace_option(meaning)(cluster_options(function))
    return decorated


class RunName(ObjectName):
    """The name of a Run, which the shell completes by those of the namespace."""

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
            "-l",
            "--selector",
            cls=TargetOption,
            default="",
            metavar="LABELS",
            help="Only Runs with these labels.",
        ),
        click.argument("names", nargs=-1, type=RunName(), metavar="[NAME]..."),
    ):
        with_targets = option(with_targets)
    decorated: Callable[..., None] = target_options(with_targets)
    return decorated
