"""`fairlead policy exceptions`: list exceptions, their ends, and the pods that used them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.api_paths import kubectl_name
from webhook.cli.exit_codes import UNKNOWN, errors_exit, fail
from webhook.cli.options import cluster_options, policies_option
from webhook.cli.output import TABLE_FORMS, output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.errors import InvalidDocuments
from webhook.names import EXCEPTION_KIND, GROUP
from webhook.questions.where import Where, paths_of

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig


@click.command("exceptions", cls=Command)
@policies_option(
    "Files or folders with exceptions, or the word cluster. Repeatable.  [default: cluster]"
)
@click.option("--in-force", is_flag=True, help="Leave out those that have ended.")
@cluster_options
@output_option("wide: with what they match.", TABLE_FORMS, report="ExceptionList", tables=True)
def command(
    policies: tuple[Where, ...],
    in_force: bool,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """List exceptions: from which policies they exempt which pods, until when, and why.

    In a cluster, the command also counts the live pods that used each exception, from their
    stamps. A pod keeps its stamp when the exception has ended. Exceptions that end soonest come
    first, ended ones last. If the webhook serves policies from files, name them with --policies.

    \b
    Examples:
      fairlead policy exceptions
      fairlead policy exceptions --in-force
      fairlead policy exceptions --policies policies/
      fairlead policy exceptions -o json | jq '.exceptions[] | select(.inForce | not) | .name'

    \b
    Exit codes:
      0  they are shown, also if there are none
      2  wrong usage, a file or a document that cannot be read (all others are shown), or the
         cluster did not answer
    """
    from datetime import UTC, datetime

    from webhook.questions.policies.exceptions_report import document, lines, of_cluster, of_files

    paths = paths_of(policies)
    with errors_exit(UNKNOWN):
        report = of_files(paths) if paths else kubeconfig.ask(of_cluster)
    now = datetime.now(UTC)
    shown = report.ordered(now, in_force=in_force)
    print_result(
        output,
        json=lambda: document(report, shown, now),
        text=lambda: lines(report, shown, now, wide=output == "wide"),
        names=lambda: [kubectl_name(GROUP, EXCEPTION_KIND, row.exception.name) for row in shown],
    )
    if output in ("text", "wide"):
        print_notes(report.notes)
    if report.wrong:
        fail(InvalidDocuments(report.wrong), UNKNOWN)
