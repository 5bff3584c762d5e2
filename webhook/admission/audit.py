"""Audit annotations of a response: what the audit log keeps of a decision.

Their keys take no slash; the API server puts the webhook's name before each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from webhook.admission.stamp import HASH_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.admission.decision import Audited, Decision


# Bytes. It repeats what the pod's author wrote, who could fill logs with it.
_LONGEST_PATCH: Final = 16_384
# What a policy under Audit would have meant to a pod. same: it would be as it is; changes: it would
# be placed otherwise, or that is not known, for another policy would refuse it; rejects: refused.
Outcome: TypeAlias = Literal["same", "changes", "rejects"]


def annotations_of(decision: Decision, set_hash: str) -> dict[str, str]:
    """The annotations; empty for a pod of no run, which is none of our business."""
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
    """What the policies under Audit would have done, as JSON.

    The patch is null where it cannot be written, or is longer than anybody reads.
    """
    result: dict[str, object] = {"policies": audited.policies, "differs": audited.differs}
    if audited.rejections:
        result["rejections"] = list(audited.rejections)
    elif audited.differs:
        patch = list(audited.patch)
        try:
            short = len(orjson.dumps(patch)) <= _LONGEST_PATCH
        except orjson.JSONEncodeError:
            # It repeats a part of the pod that is nested too deeply to write, as no API server
            # sends one. What is only recorded is no reason to refuse it.
            short = False
        result["patch"] = patch if short else None
    return result


def outcomes(
    policies: Sequence[str], rejections: Sequence[str], *, differs: bool
) -> Mapping[str, tuple[Outcome, Sequence[str]]]:
    """What each policy under Audit would have meant, and the messages by which it would reject.

    A message begins with its policy. If none is by a policy under Audit, one that is enforced
    rejects because of them: all are meant.
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
    return {policy: ("rejects" if said else "changes", said) for policy, said in own.items()}
