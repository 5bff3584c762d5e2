"""Reads what policies under Audit would have done from the API server's audit log.

Each line is an audit.k8s.io/v1 Event in JSON. The webhook's annotation has the webhook's name
before its key: `pods-0.fairlead.dev/audit`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook.admission.audit import outcomes
from webhook.audited.tally import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEY: Final = ".fairlead.dev/audit"
# Of a request that takes long there is an event when it begins, too; the last has the annotations.
_STAGE: Final = "ResponseComplete"


def records(lines: Iterable[bytes]) -> Iterator[Record]:
    """A record for each pod and policy. Lines that are no such event say nothing, and are passed.

    A dry run counts as a pod: the audit log has it as one.
    """
    for line in lines:
        # Most lines of an audit log are about something else, and parsing them is all the cost.
        if _KEY.encode() not in line:
            continue
        try:
            event = _object(json.loads(line))
        except (ValueError, RecursionError):
            continue
        if event.get("stage") == _STAGE:
            yield from _of(event)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of(event: dict[str, Any]) -> Iterator[Record]:
    about, annotations = _object(event.get("objectRef")), _object(event.get("annotations"))
    for text in (text for key, text in annotations.items() if key.endswith(_KEY)):
        try:
            report = _object(json.loads(text))
            policies = [str(policy) for policy in report["policies"]]
            rejections = [str(each) for each in report.get("rejections") or ()]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        meant = outcomes(policies, rejections, differs=bool(report.get("differs")))
        for policy, (outcome, said) in meant.items():
            yield Record(
                str(about.get("namespace") or ""),
                policy,
                outcome,
                pod=str(about.get("name") or ""),
                reason="; ".join(said),
            )
