"""The page of findings: those of `fairlead doctor`, and those in the policy reports."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import webhook
from webhook.cli import doctor
from webhook.controller.policies.report_documents import NAME, SELECTOR, collection
from webhook.errors import ClusterError
from webhook.installation.doctor.diagnose import CHECKS, Reader, diagnose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client

# Results of reports that are shown.
MOST: Final = 500
_WORST: Final = ("fail", "error", "warn", "skip")


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
        found["doctor"] = doctor.document(diagnose(state))
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
    results = [_result(each, row) for each in reports for row in each.get("results") or ()]
    results.sort(key=lambda each: (_WORST.index(each.result), each))
    without = "" if reports else "Nobody has written a policy report."
    return {"results": results[:MOST], "more": max(0, len(results) - MOST), "without": without}


def _result(report: Mapping[str, Any], row: Mapping[str, Any]) -> Result:
    result = str(row.get("result"))
    return Result(
        report["metadata"]["namespace"],
        result if result in _WORST else "skip",
        str(row.get("policy") or ""),
        str(row.get("rule") or ""),
        ", ".join(str(each.get("name")) for each in row.get("resources") or ()),
        str(row.get("message") or ""),
    )
