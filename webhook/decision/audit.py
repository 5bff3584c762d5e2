"""Audit annotations of an answer: what the audit log records of a decision.

Keys contain no slash; the API server prefixes each with the webhook's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from webhook.decision.stamp import HASH_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.decision.decision import Audited, Decision


# Bytes. The patch repeats parts of the pod, whose author could otherwise fill the audit log.
_LONGEST_PATCH: Final = 16_384
# The effect that a policy under Audit would have on a pod. same: none. changes: a different
# placement, or an unknown one because another policy would reject the pod. rejects: a rejection.
Outcome: TypeAlias = Literal["same", "changes", "rejects"]


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
    """Return the effect of the policies under Audit, as JSON.

    The patch is null if it cannot be serialized or has more than _LONGEST_PATCH bytes.
    """
    result: dict[str, object] = {"policies": audited.policies, "differs": audited.differs}
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


def outcomes(
    policies: Sequence[str], rejections: Sequence[str], *, differs: bool
) -> Mapping[str, tuple[Outcome, Sequence[str]]]:
    """Return the effect of each policy under Audit, with the messages of its rejections.

    A message starts with the name of its policy. If no message names a policy under Audit, then an
    enforced policy rejects because of them, and every policy under Audit gets all messages.
    """
    if not differs:
        return dict.fromkeys(policies, ("same", ()))
    if not rejections:
        return dict.fromkeys(policies, ("changes", ()))
    own = {
        policy: tuple(each for each in rejections if each.startswith(f"policy {policy}:"))
        for policy in policies
    }
    if not any(own.values()):
        own = dict.fromkeys(policies, tuple(rejections))
    return {
        policy: ("rejects" if messages else "changes", messages) for policy, messages in own.items()
    }
