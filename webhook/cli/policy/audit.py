"""`fairlead policy audit`: report what policies under Audit would have done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.exit_codes import DONE, FAILED, UNKNOWN, errors_exit
from webhook.cli.options import Scope, cluster_options, scope_options
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.short_help import Command
from webhook.decision.decision import TOGETHER
from webhook.shortening import count_text, harmless, one_line
from webhook.text.layout import hanging, sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.audited import Counts, Record, Row
    from webhook.kube.kubeconfig import Kubeconfig

_FILE = click.Path(exists=True, path_type=Path, allow_dash=True, dir_okay=False)
_COUNTED_UNKNOWN = (
    "more policies under Audit match than are evaluated, or a replica does not know the "
    "PriorityClass or RuntimeClass that the pod would get"
)
_HEAD = ("namespace", "policy", "would reject", "would change", "the same", "now")


@click.command("audit", cls=Command)
@click.option(
    "--metrics",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="The output of /metrics of a replica, or - for standard input, in place of the cluster. "
    "Repeatable: one file for each replica.",
)
@scope_options("Pods", cluster_wide=True)
@cluster_options
@output_option(report="AuditReport", tables=True)
def command(
    metrics: tuple[Path, ...],
    scope: Scope,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Show what policies under Audit would have done, by namespace and policy.

    A policy is under Audit by `enforcement: Audit`, or outside the namespaces of its `rollout`. The
    numbers are those of the replicas' metrics, which count since the start of each replica. Under
    NOW are the pods in the cluster that it would reject, change, and leave the same, and below the
    table which ones, with the message that their author would get.

    Each policy is judged alone: as if it were enforced, and no other policy under Audit. The row of
    policy * counts the pods that several match, as if all of those were enforced. If a pod matches
    many policies, only the first by priority are judged; the others count it as not judged. A pod
    that the API server would refuse counts as rejected, too, as far as that can be known without
    asking it; whether a quota or another webhook takes it is not judged.

    Metrics count a pod twice if different replicas answered the API server's two calls about it.

    \b
    Examples:
      fairlead policy audit                              since the replicas began, and now
      fairlead policy audit --metrics replica-1.txt --metrics replica-2.txt -o json

    \b
    Exit codes:
      0  no pod would have been rejected, and none would be now
      1  some would
      2  not known: wrong usage, a file without the webhook's metrics, no replica runs, or the
         cluster did not answer, or its policies cannot be read, or pods were not judged
    """
    from webhook.audited import answer_of, tally
    from webhook.questions.policies.audit_records import gather_records

    if twice := next((path for path in metrics if metrics.count(path) > 1), None):
        raise click.UsageError(f"{twice}: given twice; its pods would be counted twice")
    notes: list[str] = []
    counted: list[Record] | None
    now: list[Record] | None = []
    with errors_exit(UNKNOWN):
        if metrics:
            counted = list(_from_metrics(metrics))
        else:
            counted, now = kubeconfig.ask(lambda client: gather_records(client, notes))
    rows = tally([*(counted or ()), *(now or ())])
    rows = [row for row in rows if scope.namespace in ("", row.namespace)]
    print_notes(notes)
    has_counts, looked = counted is not None, not metrics and now is not None
    answer = answer_of(rows, counted=has_counts, now=looked, asked=not metrics)
    print_result(
        output,
        json=lambda: {"answer": answer, **document(rows, counted=has_counts, looked=looked)},
        text=lambda: [*sentence(answer), *lines(rows, counted=has_counts, looked=looked)],
    )
    if any(row.rejects for row in rows):
        sys.exit(FAILED)
    unknown = counted is None or now is None or any(row.not_judged for row in rows)
    sys.exit(UNKNOWN if unknown else DONE)


def _from_metrics(paths: Sequence[Path]) -> Iterator[Record]:
    from webhook.audited import NoMetrics, records_of_metrics

    for path in paths:
        with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
            try:
                yield from records_of_metrics(file.read())
            except NoMetrics as error:
                raise NoMetrics(f"{path}: {error}") from None


def lines(rows: Sequence[Row], *, counted: bool, looked: bool) -> Iterator[str]:
    """Yield a table, and below it which pods would be rejected now, and why.

    `counted`: False if it is unknown what the replicas counted; `looked`: if it is unknown what
    would become of the cluster's pods.
    """
    if not rows:
        return
    # The names in metrics were chosen by authors of pods.
    cells = [
        (
            one_line(row.namespace),
            _policy(row),
            *(
                (_red(row.counted.rejects), str(row.counted.changes), str(row.counted.same))
                if counted
                else ("?",) * 3
            ),
            f"{_red(row.now.rejects)}, {row.now.changes}, {row.now.same}" if looked else "-",
        )
        for row in rows
    ]
    yield ""
    yield from table(_HEAD, cells)
    for row in rows:
        if row.reasons:
            yield ""
            yield (
                f"{_policy(row)} in {one_line(row.namespace)} "
                f"({', '.join(map(one_line, row.rejected))}):"
            )
            for reason in row.reasons:
                yield from hanging(harmless(reason), 2)
    for row in rows:
        if row.not_judged:
            what = (
                f"{_policy(row)} in {one_line(row.namespace)}: {count_text(row.not_judged, 'pod')}"
            )
            yield ""
            why = row.unknown or [_COUNTED_UNKNOWN]
            yield from hanging(f"{what} not judged: {harmless('; '.join(why))}", 0)


def document(rows: Sequence[Row], *, counted: bool, looked: bool) -> dict[str, object]:
    """Return the same as JSON; what is not known is null."""
    return {
        "rows": [
            {
                "namespace": row.namespace,
                "policy": row.policy,
                **(_counts(row.counted) if counted else dict.fromkeys(_counts(row.counted))),
                "now": _counts(row.now) if looked else None,
                "objects": row.objects,
                "rejected": row.rejected,
                "reasons": row.reasons,
                "unknown": row.unknown,
            }
            for row in rows
        ]
    }


def _policy(row: Row) -> str:
    return f"{TOGETHER} (together)" if row.policy == TOGETHER else one_line(row.policy)


def _counts(counts: Counts) -> dict[str, int]:
    return {
        "rejects": counts.rejects,
        "changes": counts.changes,
        "same": counts.same,
        "notJudged": counts.not_judged,
    }


def _red(count: int) -> str:
    return click.style(str(count), fg="red") if count else "0"
