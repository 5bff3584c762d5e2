"""`fairlead pods`: list live pods that need attention, with the owner to restart."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook.api_paths import kubectl_name
from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.options import (
    Scope,
    cluster_options,
    policies_option,
    progress_option,
    scope_options,
    selector_option,
)
from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result, say
from webhook.cli.short_help import Command
from webhook.questions.where import Where, paths_of

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.progress import Progress
    from webhook.questions.live.pod_search import Kind


@click.command("pods", cls=Command)
@click.option(
    "--otherwise",
    is_flag=True,
    help="Pods that today's policies would place differently, or reject.",
)
@click.option("--unplaced", is_flag=True, help="Pods of runs without a stamp, with the reason.")
@click.option(
    "--no-node",
    is_flag=True,
    help="Pods of runs that wait for a node, and that no node of the cluster admits.",
)
@scope_options("Pods")
@selector_option("Pods")
@policies_option(
    "A folder of policies, or a file (repeatable), or `cluster`, which is the default."
)
@cluster_options
@progress_option(only_terminals=True)
@output_option(
    "json and yaml: every pod and difference; owners: a line for each owner, "
    "`NAMESPACE KIND.GROUP/NAME`, for kubectl.",
    (*READER_FORMS, "owners"),
    report="PodSearch",
    tables=True,
)
def command(
    otherwise: bool,
    unplaced: bool,
    no_node: bool,
    scope: Scope,
    selector: str,
    policies: tuple[Where, ...],
    kubeconfig: Kubeconfig,
    progress: Progress,
    output: str,
) -> None:
    """List live pods that need attention, each with the owner to restart.

    Without --otherwise, --unplaced or --no-node, the command looks for all three. It reads pods,
    their owners, namespaces and policies; with --no-node, or for a DaemonSet's pods, also nodes.
    It changes nothing.

    For --otherwise, today's policies are applied to the pod as its author wrote it, as in
    `fairlead explain`, and the result is compared with the pod's real spec. So a forged or an old
    stamp hides no difference. What the API server, its plugins and the scheduler add is left
    aside. --unplaced lists pods of runs without a stamp that can be read; whether a stamp is
    genuine is not checked. --no-node compares labels, taints, cordons and allocatable resources of
    each node with the pod's spec; it does not know what other pods use.

    \b
    Examples:
      fairlead pods -A
      fairlead pods --otherwise -n research -l team=vision
      fairlead pods --unplaced --no-node -A -o json
      fairlead pods --otherwise -n research -o owners |
        while read -r ns owner; do kubectl rollout restart -n "$ns" "$owner"; done

    \b
    Exit codes:
      0  no such pod, and everything could be read
      1  such pods were found
      2  wrong usage; the cluster did not answer; or no such pod was found, but something could
         not be read, so it is unknown whether there is one (stderr names it)
    """
    from webhook.questions.live import pod_search_report as report
    from webhook.questions.live.pod_search import KINDS, Search, search_pods

    paths_of(policies)
    asked = dict(zip(KINDS, (otherwise, unplaced, no_node), strict=True))
    kinds: frozenset[Kind] = frozenset(kind for kind in KINDS if asked[kind]) or frozenset(KINDS)
    with errors_exit(UNKNOWN):
        search = Search(kinds, scope.within(kubeconfig), policies, selector)
        result = kubeconfig.ask(lambda client: search_pods(client, search, progress))
    print_notes(result.notes)
    for reason in result.unknown:
        say("unknown", reason, "yellow")
    if output == "owners":
        for line in report.owner_lines(result):
            click.echo(line)
    else:
        print_result(
            output,
            json=lambda: report.document(result),
            text=lambda: report.lines(result),
            names=lambda: (kubectl_name("", "Pod", finding.name) for finding in result.findings),
        )
    if result.findings:
        sys.exit(FAILED)
    sys.exit(UNKNOWN if result.unknown else DONE)
