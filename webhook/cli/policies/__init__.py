"""`fairlead policies`: list the policies in force and the pods that they affect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.options import Scope, cluster_options, policies_option, scope_options
from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result
from webhook.questions.completion import names_of
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.policies.policies_in_force import PoliciesInForce
    from webhook.questions.where import Where


@click.command("policies")
@click.argument(
    "name",
    required=False,
    default="",
    type=ObjectName(),
    metavar="[NAME]",
    shell_complete=names_of(names.PLACEMENT_POLICIES),
)
@click.option(
    "--pods", is_flag=True, help="Show the pods and workloads that the policy NAME matches."
)
@click.option(
    "--never-matched",
    is_flag=True,
    help="Only policies that never matched a live pod, a workload or a counted evaluation.",
)
@click.option(
    "--replicas",
    is_flag=True,
    help="Show which set each replica of the webhook serves, and whether it is the "
    "cluster's current set.",
)
@policies_option(
    "A folder of policies, or a file, where the webhook serves files. Repeatable. Default: the "
    "policies that are objects of the cluster.",
    "where",
)
@scope_options("Pods and workloads", cluster_wide=True)
@cluster_options
@output_option(formats=READER_FORMS, report="PoliciesInForce", tables=True)
def command(
    name: str,
    pods: bool,
    never_matched: bool,
    replicas: bool,
    where: tuple[Where, ...],
    scope: Scope,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """List the policies in force, in order of precedence, and the pods that they match.

    For each policy: where it is enforced; how many live pods and workloads it matches now; how
    many pods it was evaluated for, and when last (from its status, else from the counters of the
    replicas since their start); and its match conditions.

    With a NAME and --pods: the live pods it was applied to, from their stamps; those it does not
    match any more, and why; those it matches now but was not applied to at creation; and the
    workloads whose new pods it will match.

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
      1  --never-matched: there are some; --replicas: not all serve the cluster's set; the policies
         do not compile
      2  wrong usage, no such policy, or the cluster did not answer
    """
    if sum((pods, never_matched, replicas)) > 1:
        raise click.UsageError("give one of --pods, --never-matched, --replicas")
    if replicas and output == "name":
        raise click.UsageError("-o name prints policies, and --replicas shows replicas")
    if bool(name) != pods:
        raise click.UsageError(
            f"give a policy's NAME together with --pods: `fairlead policies {name or 'NAME'} "
            "--pods` shows the pods that it matches"
        )
    from webhook.questions.policies.reading import gather

    with errors_exit(UNKNOWN):
        within = scope.namespace
        gathered = kubeconfig.ask(
            lambda client: gather(client, where, within, pods=not replicas, served=not name)
        )
        code = _print_answer(gathered, name, output, never=never_matched, replicas=replicas)
    sys.exit(code)


def _print_answer(
    gathered: PoliciesInForce, name: str, output: str, *, never: bool, replicas: bool
) -> int:
    from datetime import UTC, datetime

    from webhook.cli.policies import report
    from webhook.questions.policies.policies_in_force import pods_of, policy_rows

    print_notes(gathered.notes)
    rows, now = policy_rows(gathered), datetime.now(UTC)
    code, kind, shown = DONE, "", [row.name for row in rows]
    found: Any
    if gathered.wrong and not replicas:
        lines, found, code = report.wrong(gathered), report.document(gathered, rows), FAILED
    elif name:
        found = pods_of(gathered, name)
        lines, kind, shown = report.pods(gathered, found), "PodsOfPolicy", [name]
    elif replicas:
        lines, found = report.replicas(gathered), report.served_document(gathered)
        kind = "ServedSets"
        code = DONE if gathered.same_set and not gathered.wrong else FAILED
    elif never:
        unmatched = [row for row in rows if row.never]
        lines, found = report.never(gathered, now), report.document(gathered, unmatched)
        code, shown = FAILED if unmatched else DONE, [row.name for row in unmatched]
    else:
        lines, found = report.listed(gathered, now), report.document(gathered, rows)
    print_result(
        output,
        json=lambda: found,
        text=lambda: lines,
        names=lambda: (kubectl_name(names.GROUP, names.POLICY_KIND, each) for each in shown),
        kind=kind,
    )
    return code
