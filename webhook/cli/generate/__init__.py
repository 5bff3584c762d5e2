"""`fairlead generate`: print schemas and manifests."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "guard": "Print admission policies that enforce what the webhook cannot.",
    "manifests": "Print the objects that an installation applies.",
    "map": "Print policies as MutatingAdmissionPolicies, which need no webhook.",
    "schema": "Print the JSON Schema of policy files, for editors.",
}


@click.group("generate", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Print schemas and manifests. Nothing is changed, and no cluster is asked.

    \b
    Examples:
      fairlead generate schema > fairlead.json
      fairlead generate guard tolerations | kubectl apply -f -
      fairlead generate map --policies mine/ | kubectl apply -f -
    """
