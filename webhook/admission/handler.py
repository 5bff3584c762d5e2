"""Handle a pod review: from bytes to the answer with its status, logs and metrics."""

from __future__ import annotations

import logging
import time
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook import names
from webhook.admission import review
from webhook.admission.review import Unreadable
from webhook.admission.second_calls import Warned, is_second_call, key_of
from webhook.decision import audit
from webhook.decision.advice import warnings
from webhook.decision.arrival import (
    Arrival,
    history_of,
    selecting_owner,
    settle_leader,
    settle_selector,
)
from webhook.decision.decision import Decision
from webhook.decision.engine import adds_labels, counts_ordinals, decide_received, receive_pod
from webhook.decision.notice import of_no_node, of_refusal, of_rejection, refusal_of
from webhook.decision.stamp import HASH_LENGTH, stamp_of
from webhook.errors import InvalidPod, InvalidReview, NotSynced
from webhook.evaluation.audits import unjudged
from webhook.evaluation.evaluation import Evaluation
from webhook.evaluation.plugins import inputs_of
from webhook.evaluation.pod_faults import PodFaults
from webhook.evaluation.world import World
from webhook.metric_names import (
    AUDITED_DECISIONS,
    ENGINE_ERRORS,
    EXCEPTIONS_APPLIED,
    LABELS_LEFT_OUT,
    POLICY_REJECTIONS,
    UNPLACEABLE,
)
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.admission.review import PodRequest
    from webhook.decision.arrival import DecisionInputs, Objects
    from webhook.decision.decision import ReceivedPod
    from webhook.decision.notice import Notice
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable

_logger = logging.getLogger(__name__)


class Observer(Protocol):
    """A sink for metrics; called on the event loop's thread."""

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """Count an answered request by HTTP status code; `seconds` is None if not about a pod."""

    def decided(self, result: str, policies: Collection[str]) -> None:
        """Count one decision and the policies that apply."""

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count in another counter of metric_names, by the values of its labels."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. `result` is its label in metrics: the decision's result or the failure.

    With `retry` the API server retries the call a second later, within the same request.
    """

    status: int
    result: str
    body: bytes
    retry: bool = False


def problem(status: int, result: str, reason: str, *, retry: bool = False) -> Reply:
    """Return a response without a review; the API server applies failurePolicy, quoting `reason`.

    A rejection has status 200 and a review. Any other status means that there is no decision.
    """
    text = f"fairlead: {cut(reason, _REASON_LIMIT)}\n"
    return Reply(status, result, text.encode("utf-8", "backslashreplace"), retry)


def unread(uid: str, status: int, result: str, reason: str) -> Reply:
    """Return the rejection of a pod that cannot be parsed, for the review's `uid`.

    The pod's author controls its content. With a status other than 200, an author could bypass
    the policies where the failure policy is Ignore. Without the uid no rejection is possible: the
    API server treats an answer with a wrong uid as a failure.
    """
    if not uid:
        return problem(status, result, reason)
    message = f"fairlead: the pod cannot be decided on: {cut(reason, _REASON_LIMIT)}"
    return Reply(200, result, review.answer(uid, allowed=False, message=message))


# Bytes of a review whose pod is evaluated with policies under Audit enforced, at most 17 times. No
# realistic pod has more.
_MOST_BYTES: Final = 32_768
_LONG: Final = f"the review of the pod has more than {_MOST_BYTES} bytes"
# The last limit for a review whose names may be as long as a body.
_REASON_LIMIT = 1000


class _ReadReview(NamedTuple):
    """A review, its pod if that is part of a run, and the policy set that decides on it."""

    request: PodRequest
    received: ReceivedPod | None
    policies: PolicySet


@dataclass(eq=False, repr=False, slots=True)
class Handler:
    """Decide on reviews of pods.

    `clock` measures the duration of a decision. `tell` receives the notice for the owner of a pod;
    it neither waits nor raises. `reaches` takes a pod's labels and its namespace's, and returns
    whether the API server sends such pods. If it does not, a client other than the API server
    called, and no owner is notified. `objects` are read for pods whose labels do not show whether
    they lead, and for the selectors of those that get labels; without it the labels decide, and
    no label is added to the pod of an owner that counts its pods by labels.
    """

    inputs: DecisionInputs
    observer: Observer
    _: KW_ONLY
    clock: Callable[[], float] = time.perf_counter
    tell: Callable[[Notice], None] = lambda _notice: None
    reaches: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda _pod, _space: True
    objects: Objects | None = None
    _warned: Warned = field(default_factory=Warned, init=False)
    _faults: PodFaults = field(default_factory=PodFaults, init=False)

    async def handle(self, body: bytes) -> Reply:
        """Return the answer to the body of one POST. Raises nothing."""
        began = self.clock()
        uid = ""
        try:
            request = review.parse(body)
            uid, namespace = request.uid, request.namespace
            if request.as_decided:
                _logger.debug("left as decided", extra={"uid": uid, "namespace": namespace})
                body = review.answer(uid, allowed=True, warnings=[names.LEFT_AS_DECIDED])
                return Reply(200, "as-decided", body)
            cached_labels = self.inputs.namespaces.peek(namespace)
            read = None if cached_labels is None else self._read(request, cached_labels)
            if read is None or read.received is None:
                # The API server sends only pods of runs: the labels are unknown, or have changed.
                # A parsed review takes many times its bytes, and many requests may wait here.
                del request, read
                read = await self._read_live(body, namespace, is_cached=cached_labels is not None)
            request, received, policies = read
            doubts: Sequence[str] = ()
            if received is not None:
                received, doubts = await settle_leader(received, policies.sources, self.objects)
                owner = selecting_owner(received.arrival.pod)
                if owner and (
                    adds_labels(received, policies) or (counts_ordinals(received, owner, policies))
                ):
                    received = await settle_selector(received, owner, self.objects)
            return self._decide(request, received, policies, began, doubts, len(body))
        except (InvalidReview, InvalidPod, RecursionError) as error:
            if isinstance(error, Unreadable):
                uid = error.uid
            deep = isinstance(error, RecursionError)
            reason = "the pod is nested too deeply" if deep else str(error)
            _logger.warning(
                "invalid review", extra={"uid": uid, "reason": cut(reason, _REASON_LIMIT)}
            )
            return unread(uid, 400, "invalid", reason)
        except NotSynced as error:
            _logger.warning(
                "not ready to decide", extra={"uid": uid, "reason": cut(str(error), _REASON_LIMIT)}
            )
            return problem(503, "not-synced", str(error), retry=True)
        except Exception:
            # A failure must not become a 200, which would admit the pod without its policies.
            self.observer.count(ENGINE_ERRORS)
            _logger.exception("no decision", extra={"uid": uid})
            return problem(500, "error", f"an error of its own; its log has it under uid {uid}")

    def _read(self, request: PodRequest, labels: Mapping[str, str]) -> _ReadReview:
        # The whole decision uses one policy set, even if another is loaded meanwhile.
        policies = self.inputs.serving()
        received = receive_pod(self._arrival(request, labels), policies.sources)
        return _ReadReview(request, received, policies)

    async def _read_live(self, body: bytes, namespace: str, *, is_cached: bool) -> _ReadReview:
        """Read the review with the labels that its namespace has now.

        An answer that requests share may be older than a label that makes the pod one of a run. So
        if it shows no run, or the cache showed none, the labels are read for this request alone.
        """
        if not is_cached:
            labels = await self.inputs.namespaces.live(namespace)
            read = self._read(review.parse(body), labels)
            if read.received is not None:
                return read
            del read
        labels = await self.inputs.namespaces.live(namespace, fresh=True)
        return self._read(review.parse(body), labels)

    def _arrival(self, request: PodRequest, labels: Mapping[str, str]) -> Arrival:
        now = self.inputs.now()
        trusted = request.user == self.inputs.controller
        return Arrival(
            request.pod,
            request.namespace,
            labels,
            request.user,
            now,
            request.groups,
            history=history_of(request.pod) if trusted else None,
            sampled=trusted and request.dry_run,
        )

    def _decide(
        self,
        request: PodRequest,
        received: ReceivedPod | None,
        policies: PolicySet,
        began: float,
        doubts: Sequence[str],
        size: int,
    ) -> Reply:
        cluster = self.inputs.cluster()
        decision = (
            decide_received(received, policies, cluster) if received else Decision("not-a-run")
        )
        if received and decision.audited:
            decision = self._audit(received, decision, policies, size)
        if doubts:
            decision = decision._replace(warnings=[*decision.warnings, *doubts])
        second = received is not None and is_second_call(request.pod)
        no_node = self._no_node(request, decision, policies)
        if received and no_node:
            if second and self._warned.has(key_of(request, stamp_of(received.original)), began):
                # The author has that warning. Now the pod has the policies' settings as its own.
                no_node = ""
            elif decision.allowed:
                self._warned.remember(key_of(request, stamp_of(decision.placement)), began)
        refused = refusal_of(decision, self.inputs.classes())
        body = review.answer(
            request.uid,
            allowed=decision.allowed,
            message=decision.reason,
            patch=decision.patch,
            warnings=warnings(request.pod, decision, refused or no_node, titled=True),
            audit=audit.annotations_of(decision, policies.hash),
        )
        if not second or not decision.allowed:
            self._record(request.namespace, decision)
        if received and not request.dry_run:
            self._notify_owner(
                request,
                received.arrival.namespace_labels,
                decision,
                no_node,
                refused,
                policies.sources,
            )
        level = logging.INFO if no_node or refused else _level(decision)
        if _logger.isEnabledFor(level):
            seconds = self.clock() - began
            line = _line(request, decision, policies.hash, seconds)
            if second:
                line["second_call"] = True
            _logger.log(level, "decided", extra=line | _filled(no_node=no_node, refused=refused))
        return Reply(200, decision.result, body)

    def _record(self, namespace: str, decision: Decision) -> None:
        self.observer.decided(decision.result, decision.policies)
        for policy in decision.rejected_by:
            self.observer.count(POLICY_REJECTIONS, policy)
        for policy in decision.left_out:
            self.observer.count(LABELS_LEFT_OUT, policy)
        for taken in decision.set_aside.by:
            for policy in taken.policies:
                self.observer.count(EXCEPTIONS_APPLIED, taken.exception.name, policy)
        if decision.audited is not None:
            for policy, effect in decision.audited.alone.items():
                self.observer.decided(f"audit-{effect.outcome}", (policy,))
            for policy, effect in decision.audited.effects.items():
                self.observer.count(AUDITED_DECISIONS, policy, namespace, effect.outcome)

    def _audit(
        self, received: ReceivedPod, decision: Decision, policies: PolicySet, size: int
    ) -> Decision:
        """Return the decision, whose audit also has what the API server would do."""
        classes, arrival, audited = self.inputs.classes(), received.arrival, decision.audited
        if audited is None:
            return decision
        if size > _MOST_BYTES:
            return decision._replace(audited=unjudged(audited, _LONG))
        cluster = self.inputs.cluster()
        if cluster.node is None:
            # A replica that watches no nodes rejects no pod because of its node.
            cluster = replace(cluster, node=lambda _name: None)
        spaces, plugins = {arrival.namespace: arrival.namespace_labels}, inputs_of(classes)
        world = World.for_pods_as_sent(policies, cluster, spaces, arrival.now, plugins, classes)
        world = replace(world, faults=self._faults)
        try:
            return decision._replace(audited=Evaluation(world, arrival, decision).audited)
        except Exception:
            # This is only a record: the decision stands.
            self.observer.count(ENGINE_ERRORS)
            _logger.exception("audit not judged", extra={"namespace": arrival.namespace})
            why = "an error of Fairlead's own; its log has it"
            return decision._replace(audited=unjudged(audited, why))

    def _no_node(self, request: PodRequest, decision: Decision, policies: PolicySet) -> str:
        try:
            return self.inputs.unplaceable(request.pod, decision, policies)
        except Exception:
            # This is only a warning: the decision stands.
            self.observer.count(ENGINE_ERRORS)
            _logger.exception("nodes not checked", extra={"uid": request.uid})
            return ""

    def _notify_owner(
        self,
        request: PodRequest,
        labels: Mapping[str, str],
        decision: Decision,
        no_node: str,
        refused: str,
        sources: SourceTable,
    ) -> None:
        about = request.pod, request.namespace, decision
        notice = of_rejection(*about, sources=sources)
        if no_node:
            self.observer.count(UNPLACEABLE)
            notice = of_no_node(*about, no_node, sources)
        if refused:
            notice = of_refusal(*about, refused, sources)
        if notice and self.reaches(request.pod["metadata"].get("labels") or {}, labels):
            self.tell(notice)


def _filled(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _level(decision: Decision) -> int:
    differs = decision.audited is not None and decision.audited.differs
    notable = differs or decision.set_aside.by or not decision.allowed
    return logging.INFO if notable else logging.DEBUG


def _line(
    request: PodRequest, decision: Decision, set_hash: str, seconds: float
) -> dict[str, object]:
    """Return the log fields of a decision. The pod is left out: its env may hold secrets."""
    line: dict[str, object] = {
        "uid": request.uid,
        "namespace": request.namespace,
        "pod": request.title,
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
