"""`fairlead export`: policies in forms that need no webhook."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "map": "MutatingAdmissionPolicies, which the API server runs itself.",
}


@click.group("export", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Print policies in a form that needs no webhook.

    \b
    Examples:
      fairlead export map --policies mine/ | kubectl apply -f -
    """
