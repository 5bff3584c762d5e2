"""`fairlead doctor`: find problems of an installation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.options import Scope, cluster_options, scope_options
from webhook.cli.output import output_option, print_result
from webhook.cli.short_help import Command
from webhook.questions.completion import words_of
from webhook.text.layout import hanging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.installation.doctor.diagnose import Outcome
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig

_COLOURS: Final = {
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
    "unknown": "yellow",
    "ok": "green",
}
_INDENT: Final = 9


def _words() -> list[str]:
    """Return the names of the checks as the command line has them: a shell takes them unquoted."""
    from webhook.installation.doctor.diagnose import CHECKS

    return [check.name.replace(" ", "-") for check in CHECKS]


@click.command("doctor", cls=Command)
@scope_options("Pods without a stamp, and where a pod is tried,", cluster_wide=True)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="NAME",
    callback=lambda _, __, given: tuple(check.replace("-", " ") for check in given),
    shell_complete=words_of(_words),
    help="Only show findings of this check, such as unplaced-pods. Repeatable. Default: all.",
)
@cluster_options
@output_option(report="Diagnosis")
def command(
    scope: Scope,
    checks: tuple[str, ...],
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Find problems of Fairlead in the cluster, each with its fix.

    The command reads the webhook configuration, Deployments and pods, certificates (no keys),
    endpoints, policies, permissions and versions. It creates a pod of a run by dry run, and finds
    pods of runs without a stamp, such as those that were created while the webhook did not answer.
    It changes nothing. An error means that pods are rejected or not placed, now or soon. A warning
    may become an error.

    \b
    Examples:
      fairlead doctor
      fairlead doctor -n research
      fairlead doctor --check unplaced-pods
      fairlead doctor -o json | jq '.findings[] | select(.severity == "error")'

    \b
    Exit codes:
      0  no errors, and every check that applies was made
      1  errors
      2  wrong usage, the cluster did not answer, or what a check needs could not be read
    """
    from datetime import UTC, datetime

    import webhook
    from webhook.installation.doctor.cluster_reader import ClusterReader
    from webhook.installation.doctor.diagnose import CHECKS, diagnose
    from webhook.installation.doctor.result import document, nothing_checked

    check_names = [check.name for check in CHECKS]
    for name in checks:
        if name not in check_names:
            raise click.UsageError(f"--check {name!r} is not one of {', '.join(_words())}")
    wanted = [check for check in CHECKS if check.name in (checks or check_names)]
    kinds = {kind for check in wanted for kind in check.reads}

    def read(client: Client) -> Awaitable[ClusterState]:
        reader = ClusterReader(client, kinds)
        where = [scope.namespace] if scope.namespace else []
        return reader.read_cluster(datetime.now(UTC), webhook.__version__, where)

    with errors_exit(UNKNOWN):
        outcomes = diagnose(kubeconfig.ask(read))
    if checks and outcomes[0].name in check_names:
        outcomes = [outcome for outcome in outcomes if outcome.name in checks]
    made = document(outcomes)
    print_result(output, json=lambda: made, text=lambda: lines(outcomes))
    unknown = made["unknown"] or nothing_checked(outcomes)
    sys.exit(FAILED if made["errors"] else UNKNOWN if unknown else DONE)


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the findings, the most severe first; what could not be read, with the checks that are
    unknown because of it; passed checks; the number of findings."""
    from webhook.installation.doctor.result import document

    made = document(outcomes)
    rows = [
        (finding["severity"], f"{finding['check']}: {finding['message']}", finding["cure"])
        for finding in made["findings"]
    ]
    rows += [
        (
            "unknown",
            f"{', '.join(failure['checks'])}: could not read {failure['what']}: {failure['why']}",
            failure["cure"],
        )
        for failure in made["unread"]
    ]
    if made["ok"]:
        rows.append(("ok", ", ".join(made["ok"]), ""))
    for word, text, cure in rows:
        start = click.style(word, fg=_COLOURS[word], bold=True) + " " * (_INDENT - len(word))
        yield from hanging(text, _INDENT, start)
        if cure:
            yield from hanging(f"cure: {cure}", _INDENT)
    yield ""
    yield made["answer"]
