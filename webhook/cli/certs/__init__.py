"""`fairlead certs`: the webhook's certificates, looked at and renewed."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "rotate": "Have the leaf, or the authority, made anew.",
    "status": "Which certificates there are, who trusts them, and what is due.",
}


@click.group("certs", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """The webhook's certificates, which the controller keeps (`--certificates`)."""
