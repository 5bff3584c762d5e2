"""The pages of findings, of `fairlead doctor` and of policy reports; and of one pod."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

import webhook
from webhook.controller.policies.report_documents import FIRST, NAME, SELECTOR, collection
from webhook.errors import ClusterError, FairleadError
from webhook.installation.doctor.cluster_reader import ClusterReader
from webhook.installation.doctor.diagnose import CHECKS, diagnose
from webhook.installation.doctor.result import document
from webhook.questions.live import report
from webhook.questions.live.focus import Focus
from webhook.questions.live.live_answers import ask
from webhook.questions.live.live_objects import ObjectReference
from webhook.questions.where import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client

# Results of reports that are shown.
MAX_RESULTS: Final = 500


class Result(NamedTuple):
    """A result in the report of a namespace. pods: their names."""

    namespace: str
    result: str
    policy: str
    rule: str
    pods: str
    message: str


async def findings(client: Client, namespace: str) -> dict[str, Any]:
    """Ask as `fairlead doctor` does, and read the reports of a namespace, or of all."""
    kinds = {kind for check in CHECKS for kind in check.reads}
    within = (namespace,) if namespace else ()
    values: dict[str, Any] = {"trouble": "", "doctor": None}
    try:
        reader = ClusterReader(client, kinds)
        state = await reader.read_cluster(datetime.now(UTC), webhook.__version__, within)
    except ClusterError as error:
        values["trouble"] = str(error)
    else:
        values["doctor"] = document(diagnose(state))
    return {**values, **await _reports(client, namespace)}


async def _reports(client: Client, namespace: str) -> dict[str, Any]:
    query = {"labelSelector": SELECTOR}
    try:
        listed = (await client.list(collection(namespace), lambda raw: raw, query=query)).items
    except ClusterError as error:
        lacking = error.status == HTTPStatus.NOT_FOUND
        why = "The cluster has no policy reports." if lacking else str(error)
        return {"results": [], "more": 0, "without": why}
    reports = [
        policy_report for policy_report in listed if policy_report["metadata"]["name"] == NAME
    ]
    results = [
        _result(policy_report, row)
        for policy_report in reports
        for row in _items(policy_report.get("results"))
        if isinstance(row, dict)
    ]
    results.sort(key=lambda result: (FIRST[result.result], result))
    without = "" if reports else "Nobody has written a policy report."
    return {
        "results": results[:MAX_RESULTS],
        "more": max(0, len(results) - MAX_RESULTS),
        "without": without,
    }


def _items(value: object) -> list[Any]:
    """Return the value if it is a list: others may write reports too."""
    return value if isinstance(value, list) else []


def _result(report: Mapping[str, Any], row: Mapping[str, Any]) -> Result:
    result = str(row.get("result"))
    return Result(
        report["metadata"]["namespace"],
        result if result in FIRST else "skip",
        str(row.get("policy") or ""),
        str(row.get("rule") or ""),
        ", ".join(
            str(item.get("name")) for item in _items(row.get("resources")) if isinstance(item, dict)
        ),
        str(row.get("message") or ""),
    )


async def explained(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return why a pod is where it is, or nowhere: what `fairlead explain pod` prints."""
    values: dict[str, Any] = {"namespace": namespace, "name": name, "lines": [], "notes": []}
    try:
        answers = await ask(client, [ObjectReference("pod", name)], namespace, (), CLUSTER)
        values["lines"] = list(map(click.unstyle, report.lines(answers, Focus())))
        values["notes"] = [*answers.unjudged, *answers.notes]
    except FairleadError as error:
        values["notes"] = str(error).splitlines()
    return values
