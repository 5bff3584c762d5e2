"""The options of `fairlead controller` that concern certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.number import Number

if TYPE_CHECKING:
    from collections.abc import Callable


def certificate_options(function: Callable[..., None]) -> Callable[..., None]:
    """--certificates, --certificate-settle and --certificate-name."""
    certificates = click.option(
        "--certificates/--no-certificates",
        default=False,
        show_default=True,
        help="Keep the webhook's certificates too: make, renew and publish them. They are in the "
        "Lease's namespace.",
    )
    settle = click.option(
        "--certificate-settle",
        type=Number(0, 3600),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long after a change of the bundle an API server may still have the one before.",
    )
    name = click.option(
        "--certificate-name",
        "certificate_names",
        multiple=True,
        metavar="NAME",
        callback=_fit,
        help="A DNS name or an IP address that the leaf is for, too. Repeatable.",
    )
    return certificates(settle(name(function)))


def _fit(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> object:
    for name in given:
        if not name or not name.isascii() or name != name.strip():
            raise click.BadParameter(
                f"{name!r} is no name for a certificate: give a DNS name or an IP address, in ASCII"
            )
    return given
