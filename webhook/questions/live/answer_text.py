"""The first sentence of an answer about a live pod, and about the live pods of a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.evaluation.answer import doubts, hedged, nodes_of
from webhook.shortening import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.questions.live.live_pods import LivePod, State

_VERDICTS: Final[dict[State, str]] = {
    "unknown": "whether it matches today's policies is unknown: ",
    "rejected": "today it would be rejected: ",
    "refused": "today the API server would refuse it: ",
    "not sent": "today it would not be sent to the webhook: ",
    "otherwise": "differs from today's policies in ",
    "same": "matches today's policies",
}
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
        return text + shortened([each.field for each in live.differences])
    return text if live.state == "same" else text + live.reason.removeprefix("fairlead: ")


def answer_of_live_pods(pods: Sequence[LivePod]) -> str:
    """Return what the live pods of a workload do, and how many are as new ones would be.

    States that need somebody come first, each with the reason of its first pod.
    """
    if not pods:
        return "none found"
    same = sum(each.same for each in pods)
    states = ", ".join(_states(pods))
    return one_line(f"{states}; {same} of {len(pods)} as new ones would be")


def _states(pods: Sequence[LivePod]) -> Iterator[str]:
    groups: dict[str, list[LivePod]] = {}
    for live in pods:
        groups.setdefault(live.doing.word, []).append(live)
    for word in sorted(groups, key=lambda each: (each in _FINE, each)):
        waiting = [each for each in groups[word] if each.doing.why]
        why = f" ({waiting[0].pod.name}: {waiting[0].doing.why})" if waiting else ""
        yield f"{len(groups[word]):,} {word.replace(', ', ' but ')}{why}"
