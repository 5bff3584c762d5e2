"""Results about one live pod for policy reports: Audit, exceptions, a missing stamp, no node."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.decision.decision import TOGETHER
from webhook.errors import InvalidPod
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.world import labels_of
from webhook.identity import identify, leader_ref
from webhook.interception import exclusion_reason
from webhook.placement.stamp_text import read_stamp
from webhook.shortening import fit
from webhook.workloads.stored_pod import as_admitted, is_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.decision.prospects import Prospects
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.world import World
    from webhook.placement.shapes import JsonObject

_logger = logging.getLogger(__name__)

Result: TypeAlias = Literal["fail", "warn", "error", "skip"]
Severity: TypeAlias = Literal["high", "medium", "low", "info"]
# A policy's name has no slash, so these names are free.
UNPLACED: Final = f"{names.GROUP}/unplaced"
NO_NODE: Final = f"{names.GROUP}/no-node"
UNREADABLE: Final = f"{names.GROUP}/unreadable"
# All policies under Audit together.
AUDITED: Final = f"{names.GROUP}/audited"
# Faults that are logged in each pass; all are counted.
_LOGGED: Final = 3
# Characters. Authors choose parts of a message, and 200 results share one object.
_MESSAGE_MAX_CHARACTERS: Final = 500


class PodResult(NamedTuple):
    """One result; `policy` is a policy's name, or one of the names above."""

    policy: str
    rule: str
    result: Result
    severity: Severity
    message: str


class JudgedPod(NamedTuple):
    """A live pod of a run, and its results; none if all is well.

    fault: of Fairlead itself, which is why the pod could not be judged; else None
    """

    namespace: str
    name: str
    uid: str
    results: tuple[PodResult, ...]
    fault: Unjudged | None = None


class _Leadership(NamedTuple):
    """What a pod says of who leads its run.

    run:      namespace and name of the run
    leads:    it leads by its role
    in_doubt: it leads by its labels, unless another pod leads by its role
    """

    run: tuple[str, str]
    leads: bool = False
    in_doubt: bool = False


def _leadership(pod: JsonObject, world: World) -> _Leadership:
    metadata, sources = pod["metadata"], world.policies.sources
    namespace = metadata["namespace"]
    labels_and_annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    identity = identify(*labels_and_annotations, labels_of(namespace, world.namespaces), sources)
    if identity is None:
        return _Leadership((namespace, ""))
    return _Leadership(
        (namespace, identity.run),
        identity.role in names.COORDINATOR_ROLES,
        leader_ref(identity, *labels_and_annotations, sources) is not None,
    )


def judge_pod(
    pod: JsonObject, world: World, prospects: Prospects | None, *, led: bool
) -> JudgedPod | None:
    """Return the results of a stored pod; None if it belongs to no run, has ended or is deleted.

    `prospects` is None if the nodes are not known. `led`: a pod of its run leads by its role.

    The pod is judged as it is stored: an enforced policy that changed since its creation is no
    result here, but `fairlead pods --otherwise` finds it.
    """
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    if is_over(pod) or names.MIRROR_POD in annotations:
        return None
    namespace, fault = metadata["namespace"], None
    results: tuple[PodResult, ...]
    try:
        with one_pod():
            evaluation = world.evaluate(as_admitted(pod), namespace, led=led)
            if evaluation.decision.identity is None:
                return None
            results = tuple(_results(pod, evaluation, prospects))
    except (InvalidPod, Unjudged) as error:
        fault = error if isinstance(error, Unjudged) else None
        results = (_result(UNREADABLE, "read", "error", "medium", str(error)),)
    return JudgedPod(namespace, metadata["name"], metadata["uid"], results, fault)


class PodJudge:
    """Judges the pods of one pass. Those in doubt of leading wait for all others of their run.

    `faults` counts the pods that a fault of Fairlead itself left unjudged; some are logged.
    """

    def __init__(self, world: World, prospects: Prospects | None) -> None:
        self._world = world
        self._prospects = prospects
        self.faults = 0
        self._led: set[tuple[str, str]] = set()
        self._waiting: list[tuple[tuple[str, str], JsonObject]] = []

    def judge(self, pods: Sequence[JsonObject]) -> list[JudgedPod]:
        """Judge some pods."""
        judged_pods = []
        for pod in pods:
            leader = _leadership(pod, self._world)
            if leader.leads:
                self._led.add(leader.run)
            if leader.in_doubt:
                self._waiting.append((leader.run, pod))
            else:
                judged_pods.append(self._judged(pod, led=False))
        return [judged_pod for judged_pod in judged_pods if judged_pod is not None]

    def judge_rest(self) -> list[JudgedPod]:
        """Judge those that have waited, once all others were seen."""
        judged_pods = [self._judged(pod, led=run in self._led) for run, pod in self._waiting]
        return [judged_pod for judged_pod in judged_pods if judged_pod is not None]

    def _judged(self, pod: JsonObject, *, led: bool) -> JudgedPod | None:
        judged = judge_pod(pod, self._world, self._prospects, led=led)
        if judged and judged.fault:
            self.faults += 1
            if self.faults <= _LOGGED:
                what = {"namespace": judged.namespace, "pod": judged.name}
                _logger.error("pod not judged", exc_info=judged.fault, extra=what)
        return judged


def _results(
    pod: JsonObject, evaluation: Evaluation, prospects: Prospects | None
) -> Iterator[PodResult]:
    metadata, decision = pod["metadata"], evaluation.decision
    unstamped = read_stamp(metadata) is None
    if unstamped and not exclusion_reason(metadata["namespace"]):
        what = "the pod has no stamp: no policy was applied to it; fairlead pods --unplaced"
        yield _result(UNPLACED, "stamp", "fail", "medium", what)
    if prospects is not None:
        why = prospects.unplaceable_as_stored(pod, decision, evaluation.world.policies)
        if why:
            yield _result(NO_NODE, "nodes", "fail", "high", why)
    yield from _audited(evaluation)
    for exception, taken in decision.set_aside.by:
        for policy in taken:
            what = f"set aside by exception {exception.name} until {exception.end}: "
            yield _result(policy, "exception", "skip", "info", what + exception.reason)


def _audited(evaluation: Evaluation) -> Iterator[PodResult]:
    audited, decision = evaluation.audited, evaluation.decision
    if audited is None:
        return
    for name, effect in audited.notable.items():
        policy, who = (name, "it") if name != TOGETHER else (AUDITED, ", ".join(audited.policies))
        match effect.outcome:
            case "rejects":
                text = f"under Audit; {who} would reject the pod: {'; '.join(effect.rejections)}"
                yield _result(policy, "audit", "fail", "medium", text)
            case "changes":
                what = ", ".join(effect.changed_fields(decision)) or "the pod would be admitted"
                text = f"under Audit; {who} would change the placement: {what}"
                yield _result(policy, "audit", "warn", "low", text)
            case "not-judged":
                yield _result(policy, "audit", "skip", "info", f"not judged: {effect.unknown}")


def _result(policy: str, rule: str, result: Result, severity: Severity, message: str) -> PodResult:
    return PodResult(policy, rule, result, severity, fit(message, _MESSAGE_MAX_CHARACTERS))
