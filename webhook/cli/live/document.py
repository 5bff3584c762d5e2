"""What is said of live objects, as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cli import explain_json
from webhook.cli.live.judged import LivePod

if TYPE_CHECKING:
    from webhook.cli.decisions import Replicas
    from webhook.cli.live.focus import Focus
    from webhook.cli.live.question import Answers, LiveWorkload


def document(answers: Answers, focus: Focus) -> dict[str, Any]:
    """All that was asked. With a focus, lists have what is about it alone."""
    return {
        "set": answers.policies.hash,
        "same": answers.same,
        "objects": [
            _pod(each, answers, focus)
            if isinstance(each, LivePod)
            else _workload(each, answers, focus)
            for each in answers.found
        ],
    }


def _workload(found: LiveWorkload, answers: Answers, focus: Focus) -> dict[str, Any]:
    return {
        "object": found.source.title,
        "namespace": found.source.namespace,
        "same": found.same,
        "today": [_today(each, answers, focus) for each in found.replicas],
        "pods": [_pod(each, answers, focus) for each in found.pods],
    }


def _pod(live: LivePod, answers: Answers, focus: Focus) -> dict[str, Any]:
    unstamped = answers.unstamped.get((live.pod.namespace, live.pod.name))
    differences = [each for each in live.differences if not focus or focus.difference(each)]
    return {
        "object": live.pod.title,
        "namespace": live.pod.namespace,
        "same": live.same,
        "author": live.origin.said,
        "unsure": [{"policy": policy, "field": field} for policy, field in live.origin.unsure],
        "stamp": live.stamp.whole if live.stamp else None,
        "unstamped": unstamped.reason if unstamped else None,
        "today": _today(live.today, answers, focus),
        "differences": [each._asdict() for each in differences],
    }


def _today(replicas: Replicas, answers: Answers, focus: Focus) -> dict[str, Any]:
    return explain_json.of_replicas(replicas, answers.policies, answers.nodes, focus)
