"""Results about one live pod for policy reports: Audit, exceptions, a missing stamp, no node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.admission import audit, stamp
from webhook.errors import InvalidPod
from webhook.interception import exclusion_reason
from webhook.shortening import fit
from webhook.workloads.stored_pod import as_admitted, is_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.admission.decision import Decision
    from webhook.admission.prospects import Prospects
    from webhook.evaluation.world import World
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet

Result: TypeAlias = Literal["fail", "warn", "error", "skip"]
Severity: TypeAlias = Literal["high", "medium", "low", "info"]
# A policy's name has no slash, so these names are free.
UNPLACED: Final = f"{names.GROUP}/unplaced"
NO_NODE: Final = f"{names.GROUP}/no-node"
UNREADABLE: Final = f"{names.GROUP}/unreadable"
# Characters. Authors choose parts of a message, and 200 results share one object.
_LONGEST: Final = 500


class PodResult(NamedTuple):
    """One result; `policy` is a policy's name, or one of the names above."""

    policy: str
    rule: str
    result: Result
    severity: Severity
    message: str


class JudgedPod(NamedTuple):
    """A live pod of a run, and its results; none if all is well."""

    namespace: str
    name: str
    uid: str
    results: tuple[PodResult, ...]


def judge_pod(pod: JsonObject, world: World, prospects: Prospects | None) -> JudgedPod | None:
    """Return the results of a stored pod; None if it belongs to no run, has ended or is deleted.

    `prospects` is None if the nodes are not known.

    The pod is judged as it is stored: an enforced policy that changed since its creation is no
    result here, but `fairlead pods --otherwise` finds it.
    """
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    if is_over(pod) or names.MIRROR_POD in annotations:
        return None
    namespace = metadata["namespace"]
    found: tuple[PodResult, ...]
    try:
        decision = world.evaluate(as_admitted(pod), namespace, led=False).decision
        if decision.identity is None:
            return None
        found = tuple(_results(pod, decision, world.policies, prospects))
    except InvalidPod as error:
        found = (_result(UNREADABLE, "read", "error", "medium", str(error)),)
    return JudgedPod(namespace, metadata["name"], metadata["uid"], found)


def _results(
    pod: JsonObject, decision: Decision, policies: PolicySet, prospects: Prospects | None
) -> Iterator[PodResult]:
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    unstamped = stamp.parse_stamp(annotations.get(names.PLACEMENT)) is None
    if unstamped and not exclusion_reason(metadata["namespace"]):
        what = "the pod has no stamp: no policy was applied to it; fairlead pods --unplaced"
        yield _result(UNPLACED, "stamp", "fail", "medium", what)
    if prospects is not None:
        why = prospects.unplaceable_as_stored(pod, decision, policies)
        if why:
            yield _result(NO_NODE, "nodes", "fail", "high", why)
    yield from _audited(decision)
    for exception, taken in decision.set_aside.by:
        for policy in taken:
            what = f"set aside by exception {exception.name} until {exception.end}: "
            yield _result(policy, "exception", "skip", "info", what + exception.reason)


def _audited(decision: Decision) -> Iterator[PodResult]:
    audited = decision.audited
    if audited is None:
        return
    outcomes = audit.outcomes(audited.policies, audited.rejections, differs=audited.differs)
    for policy, (outcome, rejections) in outcomes.items():
        if outcome == "rejects":
            what = f"under Audit; it would reject the pod: {'; '.join(rejections)}"
            yield _result(policy, "audit", "fail", "medium", what)
            continue
        fields = dict.fromkeys(
            entry.field
            for entry in audited.trace
            if entry.policy == policy and entry not in decision.trace
        )
        if outcome == "changes" and (fields or audited.rejections):
            what = ", ".join(fields) or "unknown, because another policy would reject the pod"
            text = f"under Audit; it would change the placement: {what}"
            yield _result(policy, "audit", "warn", "low", text)


def _result(policy: str, rule: str, result: Result, severity: Severity, message: str) -> PodResult:
    return PodResult(policy, rule, result, severity, fit(message, _LONGEST))
