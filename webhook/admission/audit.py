"""Audit annotations of a response: what the audit log keeps of a decision.

Their keys take no slash; the API server puts the webhook's name before each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from webhook.admission.stamp import HASH_LENGTH

if TYPE_CHECKING:
    from webhook.admission.decision import Audited, Decision


def annotations_of(decision: Decision, set_hash: str) -> dict[str, str]:
    """The annotations; empty for a pod of no run, which is none of our business."""
    if decision.result == "not-a-run":
        return {}
    result = {"result": decision.result, "set": set_hash[:HASH_LENGTH]}
    if decision.policies:
        result["policies"] = ",".join(decision.policies)
    if decision.reason:
        result["reason"] = decision.reason
    if decision.audited is not None:
        result["audit"] = orjson.dumps(report(decision.audited)).decode("utf-8")
    return result


def report(audited: Audited) -> dict[str, object]:
    """What the policies under Audit would have done, as JSON."""
    result: dict[str, object] = {"policies": audited.policies, "differs": audited.differs}
    if audited.rejections:
        result["rejections"] = list(audited.rejections)
    elif audited.differs:
        result["patch"] = list(audited.patch)
    return result
