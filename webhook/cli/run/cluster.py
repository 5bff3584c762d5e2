"""Options that name a cluster's Runs, and the completion of their names."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from webhook import names
from webhook.cli.options import (
    Scope,
    cluster_options,
    namespace_option,
    scope_options,
    selector_option,
)
from webhook.questions.completion import names_of
from webhook.run_client.find_runs import Targets
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

_COMPLETE: Final = names_of(names.RUNS, namespaced=True)


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

        return [CompletionItem(name) for name in _COMPLETE(ctx, param, incomplete)]


def several_options(function: Callable[..., None]) -> Callable[..., None]:
    """NAME..., -l and -A beside the options for cluster and namespace: one parameter `targets`,
    which `find_runs` takes.
    """

    @wraps(function)
    def with_targets(names: tuple[str, ...], selector: str, scope: Scope, **others: Any) -> None:
        if scope.everywhere and names:
            raise click.UsageError("give names, or -A for the Runs of all namespaces; not both")
        if selector and names:
            raise click.UsageError("give names, or --selector")
        within = scope.within(others["kubeconfig"])
        function(targets=Targets(within, names, selector), **others)

    decorated: Callable[..., Any] = with_targets
    for option in (
        scope_options("Runs"),
        selector_option("Runs"),
        click.argument("names", nargs=-1, type=RunName(), metavar="[NAME]..."),
    ):
        decorated = option(decorated)
    return cluster_options(decorated)
