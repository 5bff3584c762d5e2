"""The option that several guards have: whose pods the webhook is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

sources_option: Callable[[Any], Any] = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Choice([source.name for source in SOURCES]),
    default=DEFAULT_SOURCES,
    show_default=True,
    help="Whose pods, as they were chosen at installation; may be repeated.",
)
namespaces_option: Callable[[Any], Any] = click.option(
    "--only-namespace",
    "only_namespaces",
    multiple=True,
    metavar="NAME",
    help="Only pods of this namespace, if the webhook is tried out there; may be repeated.",
)


exempt_option: Callable[[Any], Any] = click.option(
    "--exempt",
    multiple=True,
    metavar="USER",
    help="Who may all the same, such as a queue's controller that gives pods their nodes: "
    "system:serviceaccount:NAMESPACE:NAME. May be repeated.",
)


def entries(sources: Collection[str], only_namespaces: Collection[str]) -> list[dict[str, Any]]:
    """The entries of the webhook's configuration, whose selectors a guard takes."""
    return webhooks(sources, only_namespaces=sorted(only_namespaces))
