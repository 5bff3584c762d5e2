"""What the shell proposes for a word: closed lists, contexts, namespaces, and names of objects.

What these functions return, and those of three arguments, are a `shell_complete` of click. A
cluster that does not answer soon has no words: nobody who pressed Tab wants an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook import names
from webhook.errors import FairleadError
from webhook.kube.kubeconfig import Kubeconfig
from webhook.settings import NamespaceName, Selector, TargetOption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import click

    from webhook.api_paths import CollectionPath
    from webhook.kube.client import Client

    Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

# Seconds that a person waits for words after Tab.
_TAB_TIMEOUT_SECONDS: Final = 3.0


def words_of(load: Callable[[], Iterable[str]]) -> Complete:
    """Return what completes by a list, which is loaded only then."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        del ctx, param
        return _beginning(load(), incomplete)

    return complete


def members_of(module: str, attribute: str) -> Complete:
    """Return what completes by a collection of a module, or the names of its members."""

    def load() -> Iterable[str]:
        from importlib import import_module

        members = getattr(import_module(module), attribute)
        return (
            getattr(member, "name", member)
            for member in (members() if callable(members) else members)
        )

    return words_of(load)


def names_of(resource: str, *, namespaced: bool = False) -> Complete:
    """Return what completes by the names of Fairlead's objects of this resource."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from webhook.api_paths import CollectionPath

        async def look(client: Client, namespace: str) -> list[str]:
            within = namespace if namespaced else None
            return await _names(client, CollectionPath(names.API_VERSION, resource, within))

        given = ctx.params.get(param.name or "") or ()
        return [name for name in _asked(ctx, incomplete, look) if name not in given]

    return complete


def complete_namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the cluster's namespaces."""

    async def look(client: Client, namespace: str) -> list[str]:
        from webhook.api_paths import NAMESPACES

        del namespace
        return await _names(client, NAMESPACES)

    return _asked(ctx, incomplete, look)


def complete_contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the contexts of the kubeconfig."""
    from webhook.kube.config import contexts

    # --context is parsed before --kubeconfig, so `params` may have only what was typed.
    kubeconfig = ctx.params.get("kubeconfig") or Kubeconfig()
    try:
        return _beginning(contexts(kubeconfig.file), incomplete)
    except FairleadError:
        return []


def complete_references(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return kinds, and after one the names of its objects: `pod train-0`, `pod/train-0`."""
    given = ctx.params.get(param.name or "") or ()
    kind, slash, start = incomplete.partition("/")
    if not slash and given and "/" not in given[0]:
        return [name for name in _names_of_kind(ctx, given[0], incomplete) if name not in given]
    if slash:
        return [f"{kind}/{name}" for name in _names_of_kind(ctx, kind, start)]
    from webhook.workloads.by_kind import KINDS

    kinds = ("Pod", names.RUN_KIND, *(kind for _, kind in KINDS))
    return _beginning({kind.lower() for kind in kinds}, incomplete)


def _names_of_kind(ctx: click.Context, word: str, incomplete: str) -> list[str]:
    async def look(client: Client, namespace: str) -> list[str]:
        from webhook.questions.live.live_objects import Discovery

        served = await Discovery(client).by_word(word)
        return await _names(client, served.path(namespace))

    return _asked(ctx, incomplete, look)


async def _names(client: Client, path: CollectionPath) -> list[str]:
    return (await client.list(path, lambda raw: str(raw["metadata"]["name"]))).items


def _asked(
    ctx: click.Context,
    incomplete: str,
    look: Callable[[Client, str], Awaitable[Iterable[str]]],
) -> list[str]:
    """Return the words that the cluster has; `look` gets the namespace of -n, or the context's."""
    import asyncio

    kubeconfig = ctx.params.get("kubeconfig") or Kubeconfig()

    async def look_for_a_while(client: Client) -> Iterable[str]:
        async with asyncio.timeout(_TAB_TIMEOUT_SECONDS):
            return await look(client, ctx.params.get("namespace") or kubeconfig.namespace())

    try:
        return _beginning(kubeconfig.ask(look_for_a_while), incomplete)
    except (FairleadError, TimeoutError):
        return []


def _beginning(words: Iterable[str], start: str) -> list[str]:
    return sorted(word for word in words if word.startswith(start))


# What --namespace is in every command; each has its own help and default.
NAMESPACE: Final[dict[str, Any]] = {
    "cls": TargetOption,
    "type": NamespaceName(),
    "metavar": "NAME",
    "shell_complete": complete_namespaces,
}
# What --selector is in every command; each has its own help.
SELECTOR: Final[dict[str, Any]] = {
    "cls": TargetOption,
    "type": Selector(),
    "default": "",
    "metavar": "LABELS",
}
