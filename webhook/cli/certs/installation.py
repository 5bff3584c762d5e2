"""The options that tell whose certificates are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.certificates.places import Installation


def installation_options(function: Callable[..., None]) -> Callable[..., None]:
    """--namespace and --webhook-configuration."""
    namespace = click.option(
        "-n",
        "--namespace",
        default=names.NAMESPACE,
        show_default=True,
        metavar="NAME",
        help="Where Fairlead is installed.",
    )
    configuration = click.option(
        "--webhook-configuration",
        default=names.WEBHOOK_CONFIGURATION,
        show_default=True,
        metavar="NAME",
        help="The webhook configurations, of both kinds, that the bundle is published in.",
    )
    return namespace(configuration(function))


def installation_of(namespace: str, configuration: str) -> Installation:
    """The installation that the options name."""
    from webhook.controller.certificates.places import Installation, both

    return Installation(namespace, places=both(configuration))
