"""Reads what policies under Audit would have done from the API server's audit log.

Each line is an audit.k8s.io/v1 Event in JSON, or an EventList of them. The webhook's annotation has
the webhook's name before its key: `pods-0.fairlead.dev/audit`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.admission.audit import outcomes
from webhook.audited.tally import Record
from webhook.errors import FairleadError
from webhook.identity import identify

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS: Final = ".fairlead.dev/"
_KEY: Final = f"{_OURS}audit"
# The API server writes it, with the webhook's name, where a webhook did not answer.
_FAILED_OPEN: Final = "failed-open.mutation.webhook.admission.k8s.io/"
# Of a request that takes long there is an event when it begins, too; the last has the annotations.
_STAGE: Final = "ResponseComplete"
_REFUSED: Final = 400
_SHOWN: Final = 60
_NAMED: Final = 3
_RULE: Final = '{level: Metadata, resources: [{group: "", resources: [pods]}]}'


class NoAnswer(FairleadError):
    """A log does not tell what Fairlead decided; the text says why, and what to do."""


@dataclass(slots=True)
class Log:
    """What logs tell: a record for each pod and policy, and how many pods they are about.

    created: creations of pods, dry runs among them; decided: those that Fairlead decided on;
    failed_open: those that the API server let pass without its answer
    unread: lines that cannot be read, or of which our annotation cannot; unread_at: the first few
    """

    records: list[Record] = field(default_factory=list)
    created: int = 0
    decided: int = 0
    failed_open: int = 0
    unread: int = 0
    unread_at: list[str] = field(default_factory=list)

    def read(self, lines: Iterable[bytes], source: str = "") -> None:
        """Add what one log tells. Lines that are cut, or another program's, are counted.

        `source` is what the log is called. Raises NoAnswer if there is no audit event in it, none
        of a pod's creation, or no annotation of Fairlead's although it has pods of runs.
        """
        seen = _Seen()
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            seen.first = seen.first or text[:_SHOWN]
            if text and not self._read_line(text, seen):
                self.unread += 1
                if len(self.unread_at) < _NAMED:
                    self.unread_at.append(f"{source}:{number}" if source else str(number))
        if not seen.decided:
            seen.check()

    def check(self) -> None:
        """Raises NoAnswer if Fairlead decided on none of the pods: nobody asked it."""
        if not self.decided:
            raise NoAnswer(
                f"{_pods(self.created)}, and Fairlead decided on none of them: no pod of a run is "
                "in there, or the webhook was not asked; see fairlead doctor"
            )

    def _read_line(self, line: bytes, seen: _Seen) -> bool:
        """Add what a line tells; False if it may have told more than could be read."""
        # Parsing is all the cost, and most lines of an audit log are about something else.
        if b'"stage"' not in line or line[:1] != b"{" or line[-1:] != b"}":
            return False
        seen.events += 1
        if b'"pods"' not in line or b'"create"' not in line:
            return True
        events = _events(line)
        added = [self._add(event, seen) for event in events or () if _creates_pod(event)]
        return events is not None and all(added)

    def _add(self, event: dict[str, Any], seen: _Seen) -> bool:
        """Add a creation; False if it has an annotation of ours that cannot be read."""
        if event.get("stage") != _STAGE:
            seen.begun += 1
            return True
        seen.created += 1
        self.created += 1
        annotations = _object(event.get("annotations"))
        if _is_decided(annotations):
            seen.decided += 1
            self.decided += 1
            found = _records(event, annotations)
            self.records += found or ()
            return found is not None
        if _failed_open(annotations):
            seen.of_runs += 1
            self.failed_open += 1
        else:
            seen.of_runs += _is_of_run(event)
        return True


@dataclass(slots=True)
class _Seen:
    """Of one log: how it begins, and how many events and creations of pods are in it."""

    first: bytes = b""
    events: int = 0
    begun: int = 0
    created: int = 0
    decided: int = 0
    of_runs: int = 0

    def check(self) -> None:
        if not self.events:
            text = repr(self.first.decode(errors="replace")) if self.first else "nothing"
            raise NoAnswer(
                "no audit event in there: want the API server's audit log, an audit.k8s.io/v1 "
                f"Event in JSON a line; it begins with {text}"
            )
        if not self.created and self.begun:
            raise NoAnswer(
                f"{_pods(self.begun)}, none with the stage {_STAGE}, which has the annotations: "
                "take it out of omitStages in the API server's audit policy"
            )
        if not self.created:
            raise NoAnswer(
                f"{self.events} audit events, none of the creation of a pod: give a log of a time "
                f"in which pods were created, and have the audit policy record them: {_RULE}"
            )
        if self.of_runs:
            raise NoAnswer(
                f"{_pods(self.created)}, {self.of_runs} of them of runs, and no annotation of "
                "Fairlead: have the audit policy record pods at the level Metadata or above, and "
                "whatever keeps the log keep its annotations; if they are there in the API "
                "server's own log, the webhook did not answer: see fairlead doctor"
            )


def _pods(count: int) -> str:
    return f"{count} creation{'' if count == 1 else 's'} of pods"


def _events(line: bytes) -> list[dict[str, Any]] | None:
    """The events of a line; None if it is no JSON."""
    try:
        value = _object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    items = value.get("items")
    return [*map(_object, items)] if isinstance(items, list) else [value]


def _creates_pod(event: dict[str, Any]) -> bool:
    """Whether Fairlead decided on a pod, or one was created without it."""
    if _is_decided(_object(event.get("annotations"))):
        return True
    about = _object(event.get("objectRef"))
    if (event.get("verb"), about.get("resource")) != ("create", "pods"):
        return False
    code = _object(event.get("responseStatus")).get("code")
    return not about.get("subresource") and (not isinstance(code, int) or code < _REFUSED)


def _is_decided(annotations: dict[str, Any]) -> bool:
    return any(_OURS in key for key in annotations)


def _failed_open(annotations: dict[str, Any]) -> bool:
    return any(
        key.startswith(_FAILED_OPEN) and _OURS in f"{name}/" for key, name in annotations.items()
    )


def _is_of_run(event: dict[str, Any]) -> bool:
    """Whether the pod's own labels mark it; they are in the log from the level Request on."""
    metadata = _object(_object(event.get("requestObject")).get("metadata"))
    labels, annotations = _texts(metadata.get("labels")), _texts(metadata.get("annotations"))
    return identify(labels, annotations, {}) is not None


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in _object(value).items() if isinstance(text, str)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _records(event: dict[str, Any], annotations: dict[str, Any]) -> list[Record] | None:
    """A record for each policy under Audit; None if the annotation cannot be read."""
    about = _object(event.get("objectRef"))
    found = []
    for text in (text for key, text in annotations.items() if key.endswith(_KEY)):
        try:
            report = _object(json.loads(text))
            policies = [str(policy) for policy in report["policies"]]
            rejections = [str(each) for each in report.get("rejections") or ()]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        meant = outcomes(policies, rejections, differs=bool(report.get("differs")))
        found += [
            Record(
                str(about.get("namespace") or ""),
                policy,
                outcome,
                pod=str(about.get("name") or ""),
                reason="; ".join(said),
            )
            for policy, (outcome, said) in meant.items()
        ]
    return found
