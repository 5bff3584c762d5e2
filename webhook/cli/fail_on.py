"""What makes `mutate` and `explain` end with exit code 1, as --fail-on says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import click

from webhook.cli.failing import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.selection import Selection
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet

FailOn: TypeAlias = Literal["rejected", "no-node", "warning", "unknown"]
CHOICES: Final[tuple[FailOn, ...]] = ("rejected", "no-node", "warning", "unknown")


def check_usage(selection: Selection) -> None:
    """Raise UsageError if what is asked for cannot be known."""
    if "no-node" in selection.fail_on and selection.nodes is None:
        raise click.UsageError("--fail-on no-node wants --nodes FILE, or --nodes cluster")


def fails(
    wanted: Sequence[FailOn],
    decided: Sequence[Replicas],
    policies: PolicySet,
    nodes: Sequence[Node] | None,
    unknown: Iterable[str],
) -> bool:
    """Whether something of these kinds was found; a rejection always counts.

    `unknown` are lines about what could not be known. Pods without a node are named on stderr.
    """
    found = not all(each.decision.allowed for each in decided)
    if "no-node" in wanted and nodes is not None:
        for each in _without_node(decided, nodes, policies):
            say("no node", f"{each.subject}: none of the {len(nodes)} nodes admits it")
            found = True
    if "warning" in wanted:
        found |= any(each.warnings or each.decision.result == "not-sent" for each in decided)
    if "unknown" in wanted:
        found |= any(unknown)
    return found


def _without_node(
    decided: Iterable[Replicas], nodes: Sequence[Node], policies: PolicySet
) -> Iterator[Replicas]:
    from webhook.cli.explained import surveys

    for each in decided:
        if each.decision.allowed:
            survey = surveys(each, nodes, policies)
            if not survey.last.admitted and not survey.on_demand:
                yield each
