"""`fairlead policy list`, `get` and `replicas`: the policies in force."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.cli.exit_codes import FAILED, UNKNOWN, errors_exit
from webhook.cli.options import Scope, cluster_options, policies_option, scope_options
from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.questions.completion import names_of
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.policies.policies_in_force import PoliciesInForce
    from webhook.questions.where import Where


_policies_option = policies_option(
    "A folder of policies, or a file, where the webhook serves files. Repeatable. Default: the "
    "policies that are objects of the cluster.",
    "where",
)
_scope_options = scope_options("Pods and workloads", cluster_wide=True)


@click.command("list", cls=Command)
@click.option(
    "--never-matched",
    is_flag=True,
    help="Only policies that never matched a live pod, a workload or a counted evaluation.",
)
@_policies_option
@_scope_options
@cluster_options
@output_option(formats=READER_FORMS, report="PoliciesInForce", tables=True)
def listed(
    never_matched: bool,
    where: tuple[Where, ...],
    scope: Scope,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """List the policies in force, in order of precedence, and how many pods they match.

    For each policy: where it is enforced; how many live pods and workloads it matches now; how
    many pods it was evaluated for, and when last (from its status, else from the counters of the
    replicas since their start); and its match conditions.

    \b
    Examples:
      fairlead policy list
      fairlead policy list --never-matched
      fairlead policy list -n research -o json | jq '.policies[] | select(.podsMatching > 100)'

    \b
    Exit codes:
      0  shown
      1  the policies do not compile; --never-matched: there are some
      2  wrong usage, or the cluster did not answer
    """
    from datetime import UTC, datetime

    from webhook.cli.policy import report
    from webhook.questions.policies.policies_in_force import policy_rows

    gathered = _gather(kubeconfig, where, scope.namespace)
    rows, now = policy_rows(gathered), datetime.now(UTC)
    if gathered.wrong:
        _print_wrong(gathered, output)
    if never_matched:
        rows = [row for row in rows if row.never]
    print_result(
        output,
        json=lambda: report.document(gathered, rows),
        text=lambda: (report.never if never_matched else report.listed)(gathered, now),
        names=lambda: (kubectl_name(names.GROUP, names.POLICY_KIND, row.name) for row in rows),
    )
    if never_matched and rows:
        sys.exit(FAILED)


@click.command("get", cls=Command)
@click.argument("name", type=ObjectName(), shell_complete=names_of(names.PLACEMENT_POLICIES))
@_policies_option
@_scope_options
@cluster_options
@output_option(report="PodsOfPolicy", tables=True)
def get(
    name: str, where: tuple[Where, ...], scope: Scope, kubeconfig: Kubeconfig, output: str
) -> None:
    """Show the pods and workloads that a policy matches.

    These are: the live pods it was applied to, from their stamps; those it does not match any
    more, and why; those it matches now but was not applied to at creation; and the workloads whose
    new pods it will match.

    \b
    Examples:
      fairlead policy get spot-workers
      fairlead policy get spot-workers -n research -o json

    \b
    Exit codes:
      0  shown
      1  the policies do not compile
      2  wrong usage, no such policy, or the cluster did not answer
    """
    from webhook.cli.policy import report
    from webhook.questions.policies.policies_in_force import pods_of

    gathered = _gather(kubeconfig, where, scope.namespace, served=False)
    if gathered.wrong:
        _print_wrong(gathered, output)
    with errors_exit(UNKNOWN):
        policy_pods = pods_of(gathered, name)
    print_result(output, json=lambda: policy_pods, text=lambda: report.pods(gathered, policy_pods))


@click.command("replicas", cls=Command)
@_policies_option
@cluster_options
@output_option(report="ServedSets", tables=True)
def replicas(where: tuple[Where, ...], kubeconfig: Kubeconfig, output: str) -> None:
    """Show which set of policies each replica of the webhook serves, and whether it is the
    cluster's current set.

    \b
    Examples:
      fairlead policy replicas
      fairlead policy replicas --policies policies/

    \b
    Exit codes:
      0  all replicas serve the current set
      1  they do not, or it is unknown what they serve
      2  wrong usage, or the cluster did not answer
    """
    from webhook.cli.policy import report

    gathered = _gather(kubeconfig, where, pods=False)
    print_result(
        output,
        json=lambda: report.served_document(gathered),
        text=lambda: report.replicas(gathered),
    )
    if not gathered.same_set or gathered.wrong:
        sys.exit(FAILED)


def _gather(
    kubeconfig: Kubeconfig,
    where: tuple[Where, ...],
    namespace: str = "",
    *,
    pods: bool = True,
    served: bool = True,
) -> PoliciesInForce:
    """Return what the cluster says, and print notes. Without an answer, the command exits."""
    from webhook.questions.policies.reading import gather

    with errors_exit(UNKNOWN):
        gathered = kubeconfig.ask(
            lambda client: gather(client, where, namespace, pods=pods, served=served)
        )
    print_notes(gathered.notes)
    return gathered


def _print_wrong(gathered: PoliciesInForce, output: str) -> NoReturn:
    from webhook.cli.policy import report
    from webhook.questions.policies.policies_in_force import policy_rows

    print_result(
        output,
        json=lambda: report.document(gathered, policy_rows(gathered)),
        text=lambda: report.wrong(gathered),
    )
    sys.exit(FAILED)
