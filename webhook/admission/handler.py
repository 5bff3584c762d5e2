"""From the bytes of a review to the answer: HTTP status, text, and what is counted and logged."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from webhook.admission import audit, review
from webhook.admission.advice import warnings
from webhook.admission.arrival import Arrival
from webhook.admission.decision import Decision
from webhook.admission.engine import decide_seen, see
from webhook.admission.notice import of_no_node, of_rejection
from webhook.admission.review import Unreadable
from webhook.admission.stamp import HASH_LENGTH
from webhook.errors import InvalidPod, InvalidReview, NotSynced

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.admission.decision import Audited
    from webhook.admission.evaluation import ReceivedPod
    from webhook.admission.grounds import Grounds
    from webhook.admission.notice import Notice
    from webhook.admission.review import PodRequest
    from webhook.policy.policy_set import PolicySet

_logger = logging.getLogger(__name__)


class Observer(Protocol):
    """What counts; called on the event loop's thread."""

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """One request was answered with this HTTP status code; None if it was not about a pod."""

    def decided(self, result: str, policies: Collection[str]) -> None:
        """One decision was made, in which these policies took part."""

    def rejected(self, policies: Collection[str]) -> None:
        """These policies refused a pod."""

    def audited(self, policy: str, namespace: str, outcome: audit.Outcome) -> None:
        """A policy under Audit matched a pod there, and this is what it would have meant."""

    def excepted(self, exception: str, policy: str) -> None:
        """An exception took a policy that matched away from a pod."""

    def unplaceable(self) -> None:
        """No node could admit a pod that was admitted."""

    def engine_failed(self) -> None:
        """One decision ended in an exception."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer by HTTP. `result` names it in metrics: a decision's own, or what went wrong.

    With `retry` the API server tries again by itself, a second later, within the same request.
    """

    status: int
    result: str
    body: bytes
    retry: bool = False


def problem(status: int, result: str, reason: str, *, retry: bool = False) -> Reply:
    """An answer that is no review: the API server goes by its failurePolicy, and quotes `reason`.

    A pod is refused with 200 and a review. Any other status says that there is no decision.
    """
    text = f"fairlead: {_shortened(reason)}\n"
    return Reply(status, result, text.encode("utf-8", "backslashreplace"), retry)


def unread(uid: str, status: int, result: str, reason: str) -> Reply:
    """An answer to a review of a pod that is not read or makes no pod: a refusal, by its `uid`.

    The pod's author decides what is in it: with another status than 200 he would have it let
    through where failures of the webhook are ignored. Without the uid there is no refusal: the API
    server takes an answer with a wrong one for a failure.
    """
    if not uid:
        return problem(status, result, reason)
    message = f"fairlead: the pod cannot be decided on: {_shortened(reason)}"
    return Reply(200, result, review.answer(uid, allowed=False, message=message))


# The last line of defence against a review whose names are as long as a body may be.
_REASON_LIMIT = 1000


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _REASON_LIMIT else f"{reason[:_REASON_LIMIT]}…"


class Handler:
    """Decides on reviews.

    `clock` is for how long a decision took. `tell` gets what the owner of a pod is to be told, and
    neither waits nor raises; `reaches`, of a pod's labels and its namespace's, says whether the API
    server sends such pods. Of one that it would not have sent nobody is told: somebody else asks.
    """

    def __init__(
        self,
        grounds: Grounds,
        observer: Observer,
        *,
        clock: Callable[[], float] = time.perf_counter,
        tell: Callable[[Notice], None] = lambda _notice: None,
        reaches: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda _pod, _space: True,
    ) -> None:
        self._grounds = grounds
        self._observer = observer
        self._clock = clock
        self._tell = tell
        self._reaches = reaches

    async def handle(self, body: bytes) -> Reply:
        """The answer to the body of one POST. Raises nothing."""
        began = self._clock()
        uid = ""
        try:
            request = review.parse(body)
            uid, namespace = request.uid, request.namespace
            labels = self._grounds.namespaces.peek(namespace)
            seen = None if labels is None else see(self._arrival(request, labels))
            # The namespace is not known, or has changed: the API server sends pods of runs alone.
            # So an answer that has no mark is asked for anew: it may be older than the mark.
            for anew in (True,) if labels is not None else (False, True):
                if seen is not None:
                    break
                # A review that was read takes many times its bytes, and many may wait.
                del request
                labels = await self._grounds.namespaces.live(namespace, anew=anew)
                request = review.parse(body)
                seen = see(self._arrival(request, labels))
            return self._decide(request, seen, began)
        except (InvalidReview, InvalidPod, RecursionError) as error:
            if isinstance(error, Unreadable):
                uid = error.uid
            deep = isinstance(error, RecursionError)
            reason = "the pod is nested too deeply" if deep else str(error)
            _logger.warning("invalid review", extra={"uid": uid, "reason": _shortened(reason)})
            return unread(uid, 400, "invalid", reason)
        except NotSynced as error:
            _logger.warning(
                "not ready to decide", extra={"uid": uid, "reason": _shortened(str(error))}
            )
            return problem(503, "not-synced", str(error), retry=True)
        except Exception:
            # Whatever it is, it is no answer: with a 200 a pod would go where no policy wants it.
            self._observer.engine_failed()
            _logger.exception("no decision", extra={"uid": uid})
            return problem(500, "error", f"an error of its own; its log has it under uid {uid}")

    def _arrival(self, request: PodRequest, labels: Mapping[str, str]) -> Arrival:
        now = self._grounds.now()
        return Arrival(request.pod, request.namespace, labels, request.user, now, request.groups)

    def _decide(self, request: PodRequest, seen: ReceivedPod | None, began: float) -> Reply:
        # Once: the whole decision goes by one set, whatever is loaded meanwhile.
        policies = self._grounds.serving()
        cluster = self._grounds.cluster()
        decision = decide_seen(seen, policies, cluster) if seen else Decision("not-a-run")
        no_node = self._no_node(request, decision, policies)
        body = review.answer(
            request.uid,
            allowed=decision.allowed,
            message=decision.reason,
            patch=decision.patch,
            warnings=warnings(request.pod, decision, no_node, titled=True),
            audit=audit.annotations_of(decision, policies.hash),
        )
        self._observer.decided(decision.result, decision.policies)
        self._observer.rejected(decision.rejected_by)
        for taken in decision.set_aside.by:
            for policy in taken.policies:
                self._observer.excepted(taken.exception.name, policy)
        if decision.audited is not None:
            self._observer.decided(_audited_result(decision), decision.audited.policies)
            for policy, (outcome, _) in _outcomes(decision.audited).items():
                self._observer.audited(policy, request.namespace, outcome)
        if seen and not request.dry_run:
            self._tell_owner(request, seen.arrival.namespace_labels, decision, no_node)
        level = logging.INFO if no_node else _level(decision)
        if _logger.isEnabledFor(level):
            seconds = self._clock() - began
            line = _line(request, decision, policies.hash, seconds)
            _logger.log(level, "decided", extra=line | ({"no_node": no_node} if no_node else {}))
        return Reply(200, decision.result, body)

    def _no_node(self, request: PodRequest, decision: Decision, policies: PolicySet) -> str:
        try:
            return self._grounds.unplaceable(request.pod, decision, policies)
        except Exception:
            # It is but a warning: the decision stands.
            self._observer.engine_failed()
            _logger.exception("no look at the nodes", extra={"uid": request.uid})
            return ""

    def _tell_owner(
        self, request: PodRequest, labels: Mapping[str, str], decision: Decision, no_node: str
    ) -> None:
        notice = of_rejection(request.pod, request.namespace, decision)
        if no_node:
            self._observer.unplaceable()
            notice = of_no_node(request.pod, request.namespace, decision, no_node)
        if notice and self._reaches(request.pod["metadata"].get("labels") or {}, labels):
            self._tell(notice)


def _audited_result(decision: Decision) -> str:
    """What policies under Audit would have meant, as the result that they are counted under."""
    audited = decision.audited
    if audited is None or not audited.differs:
        return "audit-same"
    return "audit-rejects" if audited.rejections else "audit-differs"


def _outcomes(audited: Audited) -> Mapping[str, tuple[audit.Outcome, Sequence[str]]]:
    return audit.outcomes(audited.policies, audited.rejections, differs=audited.differs)


def _level(decision: Decision) -> int:
    differs = decision.audited is not None and decision.audited.differs
    told = differs or decision.set_aside.by or not decision.allowed
    return logging.INFO if told else logging.DEBUG


def _line(
    request: PodRequest, decision: Decision, set_hash: str, seconds: float
) -> dict[str, object]:
    """What is logged of a decision. Never the pod: its environment may hold secrets."""
    line: dict[str, object] = {
        "uid": request.uid,
        "namespace": request.namespace,
        # A pod by generateName has no name yet.
        "pod": request.name or _text(request.pod["metadata"].get("generateName")),
        "result": decision.result,
        "policies": decision.policies,
        "set": set_hash[:HASH_LENGTH],
        "ms": round(seconds * 1000, 3),
    }
    if request.dry_run:
        line["dry_run"] = True
    if decision.reason:
        line["reason"] = decision.reason
    if decision.set_aside.by:
        line["exceptions"] = decision.set_aside.by_name
    if decision.audited is not None:
        line["audit"] = audit.report(decision.audited)
    return line


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
