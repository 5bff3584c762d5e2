"""`fairlead guard`: the ValidatingAdmissionPolicies that hold what the webhook alone cannot."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

# Each is the attribute `command` of the module of its name in this package.
COMMANDS: Final[dict[str, str]] = {
    "authors": "Who makes a Run must be allowed to make its pods.",
    "node-names": "No pod of a run comes with its node already chosen.",
    "stamp": "Pods of runs that a webhook which may be ignored let through.",
    "tolerations": "No toleration of a capacity class is added to a pod later.",
}


@click.group("guard", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Print ValidatingAdmissionPolicies that hold what the webhook alone cannot.

    Those for the marks of an ordinary installation, and for the capacity classes that ship, are in
    manifests/ already. These commands print them for your own.
    """
