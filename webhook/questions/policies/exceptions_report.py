"""The exceptions of files or a cluster, the live pods that used each, as text and JSON."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from webhook.api_paths import CollectionPath
from webhook.errors import InvalidDocuments, PassOver
from webhook.judgement.set_judgement import Objects
from webhook.placement.stamp_text import read_stamp
from webhook.policy import policy_documents
from webhook.policy.conditions import describe_fields
from webhook.policy.exceptions import PolicyException, compiled
from webhook.policy.load import compiled as load_compiled
from webhook.policy.model import PlacementException
from webhook.questions.live.served_policies import differing
from webhook.questions.offline import policy_files
from webhook.shortening import harmless
from webhook.text.documents import as_finding
from webhook.text.layout import table
from webhook.workloads.stored_pod import is_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from webhook.kube.client import Client
    from webhook.policy.exceptions import PolicyException
    from webhook.policy.findings import Finding
    from webhook.policy.match_model import Match
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.reader import Documents

_ALL = "all policies"


class ExceptionRow(NamedTuple):
    """One exception, with its `match` as written."""

    exception: PolicyException
    policies: Sequence[str]
    match: Match


class ExceptionReport(NamedTuple):
    """The exceptions. `pods` has the number of live pods by exception; None if unknown.

    `notes` are lines about unknown facts, `wrong` about invalid documents, which are not shown.
    """

    exceptions: Sequence[ExceptionRow]
    pods: Mapping[str, int] | None
    notes: Sequence[str]
    wrong: Sequence[Finding] = ()

    def ordered(self, now: datetime, *, in_force: bool) -> list[ExceptionRow]:
        """Exceptions in force, the earliest end first; then, unless `in_force`, ended ones."""
        kept = [row for row in self.exceptions if row.exception.in_force(now) or not in_force]
        return sorted(
            kept,
            key=lambda row: (
                not row.exception.in_force(now),
                abs((row.exception.until - now).total_seconds()),
                row.exception.name,
            ),
        )


def of_files(paths: Sequence[Path]) -> ExceptionReport:
    """Return the exceptions in files. Raises UnreadableInput."""
    return _report(policy_documents.parse(policy_files(paths)), None, [])


async def of_cluster(client: Client) -> ExceptionReport:
    """Return the exceptions that a cluster holds, and its live pods. Raises ClusterError."""
    from webhook.cluster_objects.policy_objects import read_whole_objects

    documents = Objects().documents(await read_whole_objects(client))
    try:
        notes = await differing(client, load_compiled(documents).policies)
    except InvalidDocuments:
        notes = ["the documents do not compile to a policy set: the webhook uses the last good one"]
    with PassOver(HTTPStatus.FORBIDDEN):
        listed = await client.list(CollectionPath("v1", "pods"), _passed_by)
        passed = Counter(name for exceptions in listed.items for name in exceptions)
        return _report(documents, passed, notes)
    notes.append("you may not list pods: who has passed is not known")
    return _report(documents, None, notes)


def _report(
    documents: Documents[PolicyDocument], pods: Mapping[str, int] | None, notes: Sequence[str]
) -> ExceptionReport:
    good = [document.model for document in documents.documents]
    shown = [
        ExceptionRow(compiled(model), model.spec.policies, model.spec.match)
        for model in good
        if isinstance(model, PlacementException)
    ]
    return ExceptionReport(shown, pods, notes, documents.errors)


def _passed_by(pod: dict[str, Any]) -> Sequence[str]:
    stamp = None if is_over(pod) else read_stamp(pod["metadata"])
    return tuple(stamp.exceptions) if stamp else ()


def lines(
    report: ExceptionReport, shown: Sequence[ExceptionRow], now: datetime, *, wide: bool
) -> Iterator[str]:
    """Yield a table with a row for each exception; wide: with its match."""
    if not shown:
        yield "No exceptions in force." if report.exceptions else "No exceptions."
    head = (
        "name",
        "policies",
        "until",
        "in force",
        "pods",
        *(("match",) if wide else ()),
        "reason",
    )
    yield from table(head, [[*_cells(report, row, now, wide=wide)] for row in shown])


def _cells(
    report: ExceptionReport, row: ExceptionRow, now: datetime, *, wide: bool
) -> Iterator[str]:
    exception = row.exception
    in_force = exception.in_force(now)
    yield exception.name
    yield _ALL if exception.policies is None else ", ".join(row.policies)
    yield exception.end
    yield click.style(str(in_force), fg="green" if in_force else "yellow")
    yield "?" if report.pods is None else str(report.pods.get(exception.name, 0))
    if wide:
        yield describe_match(row.match)
    yield harmless(exception.reason)


def document(
    report: ExceptionReport, shown: Sequence[ExceptionRow], now: datetime
) -> dict[str, Any]:
    """Return the same as JSON; `pods` is null if unknown."""
    return {
        "exceptions": [
            {
                "name": row.exception.name,
                "inForce": row.exception.in_force(now),
                "until": row.exception.end,
                "policies": list(row.policies),
                "match": row.match.model_dump(by_alias=True, exclude_none=True),
                "reason": row.exception.reason,
                "pods": None if report.pods is None else report.pods.get(row.exception.name, 0),
            }
            for row in shown
        ],
        "notes": report.notes,
        "findings": [*map(as_finding, report.wrong)],
    }


def describe_match(match: Match) -> str:
    """Return a match block in a line: `namespaces research, ml-*; podSelector debug=anna`."""
    return "; ".join(f"{field.document_name} {text}" for field, text in describe_fields(match))
