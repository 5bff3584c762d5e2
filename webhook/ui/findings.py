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
from webhook.questions.live.answer_text import answer_of_pod
from webhook.questions.live.focus import Focus
from webhook.questions.live.live_answers import ask
from webhook.questions.live.live_objects import ObjectReference
from webhook.questions.where import CLUSTER
from webhook.ui.playground import details_of
from webhook.ui.pools import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client
    from webhook.questions.live.live_pods import LivePod

# Checks by which placement is in force.
_DECIDING: Final = "end to end"
_OF_PLACEMENT: Final = (_DECIDING, "interception", "endpoints", "policies")
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


async def placement_in_force(client: Client) -> tuple[str, str]:
    """Return whether pods of runs are placed, in a word and a sentence: what doctor finds of it."""
    checks = [check for check in CHECKS if check.name in _OF_PLACEMENT]
    kinds = {kind for check in checks for kind in check.reads}
    try:
        state = await ClusterReader(client, kinds).read_cluster(
            datetime.now(UTC), webhook.__version__, ()
        )
    except ClusterError as error:
        return "unknown", str(error)
    outcomes = diagnose(state)
    # Without an installation there is one outcome, which says so.
    if outcomes[0].name in [check.name for check in CHECKS]:
        outcomes = [outcome for outcome in outcomes if outcome.name in _OF_PLACEMENT]
    made = document(outcomes)
    for finding in made["findings"]:
        if finding["severity"] != "note":
            return finding["severity"], finding["message"]
    if made["unread"]:
        return "unknown", f"could not read {made['unread'][0]['what']}: {made['unread'][0]['why']}"
    if _DECIDING not in made["ok"]:
        return "unknown", made["answer"]
    return "in force", f"fairlead doctor, {', '.join(made['ok'])}: {made['answer']}"


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
    values: dict[str, Any] = {"answer": "", "lines": [], "notes": [], "group": None, "tone": ""}
    values |= {"namespace": namespace, "name": name}
    try:
        answers = await ask(client, [ObjectReference("pod", name)], namespace, (), CLUSTER)
    except FairleadError as error:
        values["notes"] = str(error).splitlines()
        return values
    values["notes"] = [*answers.unjudged, *answers.notes]
    for live in answers.answers[0].pods if answers.answers else ():
        nodes = answers.world.nodes or ()
        values["answer"] = answer_of_pod(live)
        values["tone"] = _tone(live)
        values["lines"] = list(map(click.unstyle, report.lines(answers, Focus())))
        classes = list(answers.policies.classes.values())
        titles = {node.name: title_of(node, classes) for node in nodes}
        values["group"] = details_of(live.today, nodes, titles)
    return values


def _tone(live: LivePod) -> str:
    """Return the class of the sheet for what the sentence says first: what the pod does."""
    if live.doing.word == "Failed":
        return "bad"
    if live.doing.why or live.doing.word not in ("Running", "Succeeded"):
        return "late"
    return "good" if live.same else "late"
