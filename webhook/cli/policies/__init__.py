"""`fairlead policies`: which policies are in force, and what they touch."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from webhook.cli import noting
from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.output_option import output_option
from webhook.cli.where import WhereType

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.cli.policies.policies_in_force import PoliciesInForce
    from webhook.cli.where import Where


@click.command("policies")
@click.argument("name", required=False, default="", metavar="[NAME]")
@click.option("--pods", is_flag=True, help="The pods and workloads that the policy NAME touches.")
@click.option(
    "--never-matched",
    is_flag=True,
    help="Only policies that no live pod, no workload and no counted decision ever matched.",
)
@click.option(
    "--replicas",
    is_flag=True,
    help="Which set each replica of the webhook serves, and whether it is that of the cluster's "
    "policies now.",
)
@click.option(
    "--policies",
    "where",
    multiple=True,
    type=WhereType(folders=True),
    metavar="PATH",
    help="A folder of policies, or a file, where the webhook serves files. Repeatable. Default: "
    "the policies that are objects of the cluster.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="Look at pods and workloads of this namespace only. Default: all of them.",
)
@cluster_options
@output_option()
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    pods: bool,
    never_matched: bool,
    replicas: bool,
    where: tuple[Where, ...],
    namespace: str,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Tell which policies are in force, in the order in which they win, and what they touch.

    Of each: where it is enforced, how many live pods and workloads match it now, how many pods it
    was decided on and when last (by its status, which the controller keeps, else by what replicas
    have counted since they began), and for which pods it is.

    With a NAME and --pods: the live pods in which it took part, by their stamps; those that it
    would not match any more, and why; those that match now, though it took no part when they were
    created; and the workloads whose new pods it will touch.

    \b
    Examples:
      fairlead policies
      fairlead policies spot-workers --pods
      fairlead policies --never-matched
      fairlead policies --replicas
      fairlead policies -n research -o json | jq '.policies[] | select(.podsMatching > 100)'

    \b
    Exit codes:
      0  shown
      1  --never-matched: there are some; --replicas: they do not all serve one set, and the right
         one; the policies are no set
      2  wrong usage, no such policy, or the cluster did not answer
    """
    from webhook.cli.failing import fail
    from webhook.errors import FairleadError

    if sum((pods, never_matched, replicas)) > 1:
        raise click.UsageError("give one of --pods, --never-matched, --replicas")
    if bool(name) != pods:
        raise click.UsageError(
            "a policy's NAME and --pods go together: "
            f"`fairlead policies {name or 'NAME'} --pods` tells which pods that one touches"
        )
    try:
        gathered = asyncio.run(
            _gathered(where, namespace, kubeconfig, context, pods=not replicas, served=not name)
        )
        code = _tell(gathered, name, output, never=never_matched, replicas=replicas)
    except FairleadError as error:
        fail(error, 2)
    ctx.exit(code)


async def _gathered(
    where: tuple[Where, ...],
    namespace: str,
    kubeconfig: Path | None,
    context: str,
    *,
    pods: bool,
    served: bool,
) -> PoliciesInForce:
    from webhook.cli.policies.reading import gather

    async with client_of(kubeconfig, context) as client:
        return await gather(client, where, namespace, pods=pods, served=served)


def _tell(gathered: PoliciesInForce, name: str, output: str, *, never: bool, replicas: bool) -> int:
    """Print what is asked; the exit code."""
    from webhook.cli.policies import document, summary, text
    from webhook.cli.policies.pods import pods_of

    noting.tell(gathered.notes)
    rows = summary.rows(gathered)
    if gathered.wrong and not replicas:
        lines, found, code = text.wrong(gathered), document.document(gathered, rows), 1
    elif name:
        of_one = pods_of(gathered, name)
        lines, found, code = text.pods(of_one), document.pods(of_one), 0
    elif replicas:
        skew = summary.skew(gathered)
        lines, found = text.replicas(gathered), document.served(gathered)
        code = 0 if skew and skew.same and not gathered.wrong else 1
    elif never:
        unmatched = [row for row in rows if row.never]
        lines, found = text.never(gathered), document.document(gathered, unmatched)
        code = 1 if unmatched else 0
    else:
        lines, found, code = text.listed(gathered), document.document(gathered, rows), 0
    if output == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            click.echo(line)
    return code
