"""The first sentence of an answer about a live pod, and about the live pods of a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.evaluation.answer import doubts, hedged, nodes_of
from webhook.placement.shapes import as_object, objects_in
from webhook.run.progress import CREATED
from webhook.shortening import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.questions.live.live_pods import Answer, LivePod, State
    from webhook.workloads.object import Object

_VERDICTS: Final[dict[State, str]] = {
    "unknown": "whether it matches today's policies is unknown: ",
    "rejected": "today it would be rejected: ",
    "refused": "today the API server would refuse it: ",
    "not sent": "today it would not be sent to the webhook: ",
    "otherwise": "differs from today's policies in ",
    "same": "matches today's policies",
}
# States of pods in whose place a controller creates others.
# States of pods that need nobody.
_FINE: Final = ("Running", "Succeeded")


def answer_of_pod(live: LivePod) -> str:
    """Return what a live pod does, and how it compares with a pod that is created now."""
    verdict = _verdict(live)
    if live.state != "unknown":
        verdict = hedged(verdict, doubts(live.today))
    nodes = live.today.evaluation.nodes
    asked = nodes and live.today.admitted
    parts = (str(live.doing), verdict, f"created again: {nodes_of(nodes)}" if asked else "")
    return one_line("; ".join(filter(None, parts)))


def _verdict(live: LivePod) -> str:
    if not live.is_run:
        return "not part of a run, so no policy applies"
    if live.unstamped:
        return "no policy was applied to it: it has no stamp"
    text = _VERDICTS[live.state]
    if live.state == "otherwise":
        return text + shortened([difference.field for difference in live.differences])
    return text if live.state == "same" else text + live.reason.removeprefix("fairlead: ")


def answer_of_live_pods(answer: Answer) -> str:
    """Return what the live pods of a workload do, and how many are as new ones would be.

    States that need somebody come first, each with the reason of its first pod; before them how
    many pods its controller has not created.
    """
    missing, pods = _missing(answer.source, answer.pods), answer.pods
    if not pods:
        return one_line(missing or "none found")
    same = sum(pod.same for pod in pods)
    states = ", ".join([*filter(None, [missing]), *_states(pods)])
    return one_line(f"{states}; {same} of {len(pods)} as new ones would be")


def _missing(source: Object, pods: Sequence[LivePod]) -> str:
    """Return how many of a workload's replicas have no pod, with the reason if its status has one.

    Source: apps/v1 and v1, `spec.replicas`; the condition ReplicaFailure of Deployments and
    ReplicaSets, and Created of Runs. Of others it is not known how many pods there should be.
    """
    listed = as_object(source.value.get("status")).get("conditions")
    conditions = {
        condition.get("type"): condition
        for condition in objects_in(listed if isinstance(listed, list) else [])
    }
    if source.is_own_run:
        created = conditions.get(CREATED, {})
        return str(created.get("message")) if created.get("status") == "False" else ""
    wanted = as_object(source.value.get("spec")).get("replicas")
    if source.value.get("apiVersion") not in ("apps/v1", "v1") or not isinstance(wanted, int):
        return ""
    count = wanted - sum(live.doing.word not in names.TERMINAL_PHASES for live in pods)
    why = conditions.get("ReplicaFailure", {}).get("message")
    reason = f" ({why})" if why else ""
    return f"{count:,} of {wanted:,} pods not created{reason}" if count > 0 else ""


def _states(pods: Sequence[LivePod]) -> Iterator[str]:
    groups: dict[str, list[LivePod]] = {}
    for live in pods:
        groups.setdefault(live.doing.word, []).append(live)
    for word in sorted(groups, key=lambda state: (state in _FINE, state)):
        waiting = [pod for pod in groups[word] if pod.doing.why]
        why = f" ({waiting[0].pod.name}: {waiting[0].doing.why})" if waiting else ""
        yield f"{len(groups[word]):,} {word.replace(', ', ' but ')}{why}"
