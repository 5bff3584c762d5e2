"""The pages of findings, of `fairlead doctor` and of policy reports; and of one pod."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

import webhook
from webhook.controller.policies.report_documents import FIRST, NAME, SELECTOR, collection
from webhook.errors import ClusterError, FairleadError
from webhook.installation.doctor.diagnose import CHECKS, Reader, diagnose
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
    found: dict[str, Any] = {"trouble": "", "doctor": None}
    try:
        reader = Reader(client, kinds)
        state = await reader.read_cluster(datetime.now(UTC), webhook.__version__, within)
    except ClusterError as error:
        found["trouble"] = str(error)
    else:
        found["doctor"] = document(diagnose(state))
    return {**found, **await _reports(client, namespace)}


async def _reports(client: Client, namespace: str) -> dict[str, Any]:
    query = {"labelSelector": SELECTOR}
    try:
        listed = (await client.list(collection(namespace), lambda raw: raw, query=query)).items
    except ClusterError as error:
        lacking = error.status == HTTPStatus.NOT_FOUND
        why = "The cluster has no policy reports." if lacking else str(error)
        return {"results": [], "more": 0, "without": why}
    reports = [each for each in listed if each["metadata"]["name"] == NAME]
    results = [
        _result(each, row)
        for each in reports
        for row in _items(each.get("results"))
        if isinstance(row, dict)
    ]
    results.sort(key=lambda each: (FIRST[each.result], each))
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
            str(each.get("name")) for each in _items(row.get("resources")) if isinstance(each, dict)
        ),
        str(row.get("message") or ""),
    )


async def explained(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return why a pod is where it is, or nowhere: what `fairlead explain pod` prints."""
    values: dict[str, Any] = {"namespace": namespace, "name": name, "lines": [], "notes": []}
    try:
        found = await ask(client, [ObjectReference("pod", name)], namespace, (), CLUSTER)
        values["lines"] = list(map(click.unstyle, report.lines(found, Focus())))
        values["notes"] = [*found.unjudged, *found.notes]
    except FairleadError as error:
        values["notes"] = str(error).splitlines()
    return values
