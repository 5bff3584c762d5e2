"""`fairlead policy`: what is in force in a cluster."""

from __future__ import annotations

from typing import Final

import click

from webhook.cli.lazy import LazyGroup

COMMANDS: Final[dict[str, str]] = {
    "audit": "Show what policies under Audit would have done, by namespace.",
    "exceptions": "List exceptions: their end, and the pods that used them.",
    "get": "Show the pods and workloads that a policy matches.",
    "list": "List the policies in force, and how many pods they match.",
    "replicas": "Show which set of policies each replica of the webhook serves.",
    "sources": "List the labels by which Fairlead recognizes each system's pods.",
    "values": "Show the values that policies take from labels of namespaces.",
}
_IN_FORCE: Final = {
    command: f"webhook.cli.policy.in_force:{name}"
    for command, name in (("get", "get"), ("list", "listed"), ("replicas", "replicas"))
}


@click.group("policy", cls=LazyGroup, package=__name__, table=COMMANDS, elsewhere=_IN_FORCE)
def command() -> None:
    """Show the policies in force, what they match, and what they would do.

    \b
    Examples:
      fairlead policy list
      fairlead policy get spot-workers
      fairlead policy audit
    """
