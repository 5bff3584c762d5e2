"""Audit annotations of an answer: what the audit log records of a decision.

Keys contain no slash; the API server prefixes each with the webhook's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook.decision.decision import Effect
from webhook.decision.stamp import HASH_LENGTH

if TYPE_CHECKING:
    from webhook.decision.decision import Audited, Decision, Outcome
    from webhook.decision.engine import Evaluation


# Bytes. The patch repeats parts of the pod, whose author could otherwise fill the audit log.
_LONGEST_PATCH: Final = 16_384
# The most policies under Audit of one pod that are evaluated alone, each in about the time of a
# decision: a pod that matches more is not worth the wait of its author.
MOST_ALONE: Final = 16
NOT_JUDGED: Final = Effect(
    "not-judged",
    unknown=f"more than {MOST_ALONE} policies under Audit match, and the first {MOST_ALONE} by "
    "priority are evaluated",
)


def annotations_of(decision: Decision, set_hash: str) -> dict[str, str]:
    """Return the audit annotations of a decision; empty for a pod that belongs to no run."""
    if decision.result == "not-a-run":
        return {}
    result = {"result": decision.result, "set": set_hash[:HASH_LENGTH]}
    if decision.policies:
        result["policies"] = ",".join(decision.policies)
    if decision.reason:
        result["reason"] = decision.reason
    if decision.set_aside.by:
        result["exceptions"] = orjson.dumps(decision.set_aside.by_name).decode("utf-8")
    if decision.audited is not None:
        result["audit"] = orjson.dumps(report(decision.audited)).decode("utf-8")
    return result


def report(audited: Audited) -> dict[str, object]:
    """Return the effect of the policies under Audit, as JSON: of each alone, and of all together.

    The patch is of all together; null if it cannot be serialized or has more than _LONGEST_PATCH
    bytes.
    """
    result: dict[str, object] = {
        "policies": audited.policies,
        "differs": audited.differs,
        "outcomes": {
            policy: policy_effect.outcome for policy, policy_effect in audited.effects.items()
        },
    }
    if unknown := {policy: e.unknown for policy, e in audited.effects.items() if e.unknown}:
        result["unknown"] = unknown
    if audited.rejections:
        result["rejections"] = list(audited.rejections)
    elif audited.differs:
        patch = list(audited.patch)
        try:
            short = len(orjson.dumps(patch)) <= _LONGEST_PATCH
        except orjson.JSONEncodeError:
            # The patch repeats a part of the pod that is nested too deeply to serialize. The API
            # server sends no such pod, and a failure to record is no reason to reject one.
            short = False
        result["patch"] = patch if short else None
    return result


def effect(now: Evaluation, then: Evaluation) -> Effect:
    """Return the effect of enforcing policies: from what becomes of the pod `now` to `then`.

    Of a pod that is rejected now, only its admission is a change: the text of a rejection is none.
    """
    outcome: Outcome = "same"
    if then.rejections:
        outcome = "same" if now.rejections else "rejects"
    elif now.rejections or then.placement != now.placement:
        outcome = "changes"
    return Effect(outcome, then.rejections, then.merged.trace if then.merged else ())
