"""Sum up what policies under Audit would have done, from recorded decisions.

The records come from the API server's audit log, or from the metrics of the webhook's replicas.
Each line of the log is an audit.k8s.io/v1 Event in JSON, or an EventList of them. The webhook's
annotation has the webhook's name before its key: `pods-0.fairlead.dev/audit`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from prometheus_client.parser import text_string_to_metric_families

from webhook.admission.audit import Outcome, outcomes
from webhook.errors import FairleadError
from webhook.identity import identify
from webhook.interception import entry_name, exclusion_reason
from webhook.metric_names import AUDITED_DECISIONS
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Maximum number of pods, and of different reasons, that a row names.
EXAMPLES: Final = 3


class Record(NamedTuple):
    """One or more pods that a policy under Audit matched.

    `pod` is the name of a pod, if it is known, and `reason` the message that its author would have
    got; both may be empty.
    """

    namespace: str
    policy: str
    outcome: Outcome
    pods: int = 1
    pod: str = ""
    reason: str = ""


@dataclass(slots=True)
class Row:
    """What one policy would have done in one namespace: numbers of pods, and some examples."""

    namespace: str
    policy: str
    same: int = 0
    changes: int = 0
    rejects: int = 0
    pods: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def matched(self) -> int:
        """How many pods it matched."""
        return self.same + self.changes + self.rejects


def tally(records: Iterable[Record]) -> Sequence[Row]:
    """Return a row for each namespace and policy, those that would reject most pods first."""
    rows: dict[tuple[str, str], Row] = {}
    for each in records:
        key = (each.namespace, each.policy)
        row = rows.setdefault(key, Row(*key))
        setattr(row, each.outcome, getattr(row, each.outcome) + each.pods)
        if each.outcome == "same":
            continue
        for text, examples in ((each.pod, row.pods), (each.reason, row.reasons)):
            if text and text not in examples and len(examples) < EXAMPLES:
                examples.append(text)
    return sorted(rows.values(), key=lambda r: (-r.rejects, -r.changes, r.namespace, r.policy))


_OURS: Final = ".fairlead.dev/"
_KEY: Final = f"{_OURS}audit"
# The API server writes it, with the webhook's name, where a webhook did not answer.
_FAILED_OPEN: Final = "failed-open.mutation.webhook.admission.k8s.io/"
# A request that takes long has several events; the last one has the annotations.
_STAGE: Final = "ResponseComplete"
_REFUSED: Final = 400
_SHOWN: Final = 60
_NAMED: Final = 3
# What is sent to the webhook in every installation.
_OWN: Final = frozenset(
    entry_name(source.name, number)
    for source in SOURCES
    if source.name == "fairlead"
    for number in range(len(source.marks))
)
_RULE: Final = '{level: Metadata, resources: [{group: "", resources: [pods]}]}'


class NoAnswer(FairleadError):
    """A log does not show what Fairlead decided; the text has the reason and the cure."""


@dataclass(slots=True)
class Log:
    """The content of logs: a record for each pod and policy, and counts of pods.

    created: pods created, including dry runs
    decided: pods that Fairlead evaluated
    failed_open: pods that the API server admitted without an answer of Fairlead
    passed_by: other pods with marks of runs that no entry of the webhook answered for, by the names
        of the entries for these marks: their number, and the first few
    answered: the entries that answered
    unread: lines, or annotations of Fairlead, that cannot be read; unread_at: the first few
    """

    records: list[Record] = field(default_factory=list)
    created: int = 0
    decided: int = 0
    failed_open: int = 0
    passed_by: dict[frozenset[str], PassedBy] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    unread: int = 0
    unread_at: list[str] = field(default_factory=list)

    def read(self, lines: Iterable[bytes], source: str = "") -> None:
        """Add one log. Lines that are cut off, or from another program, are counted.

        `source` is the name of the log. Raises NoAnswer if it has no audit event, no creation of a
        pod, or pods of runs but no annotation of Fairlead.
        """
        counts = _LogCounts()
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            counts.first = counts.first or text[:_SHOWN]
            if text and not self._read_line(text, counts):
                self.unread += 1
                if len(self.unread_at) < _NAMED:
                    self.unread_at.append(f"{source}:{number}" if source else str(number))
        if not counts.decided:
            counts.check()

    def check(self) -> None:
        """Raise NoAnswer if Fairlead evaluated none of the pods."""
        if not self.decided:
            raise NoAnswer(
                f"{_pods(self.created)}, and Fairlead evaluated none of them: the log has no pod "
                "of a run, or the webhook was not called; run fairlead doctor"
            )

    def _read_line(self, line: bytes, counts: _LogCounts) -> bool:
        """Add a line; False if part of it cannot be read."""
        # Parsing is the main cost, and most lines of an audit log are about other objects.
        if b'"stage"' not in line or line[:1] != b"{" or line[-1:] != b"}":
            return False
        counts.events += 1
        if b'"pods"' not in line or b'"create"' not in line:
            return True
        events = _events(line)
        added = [self._add(event, counts) for event in events or () if _creates_pod(event)]
        return events is not None and all(added)

    def _add(self, event: dict[str, Any], counts: _LogCounts) -> bool:
        """Add a creation; False if it has an annotation of Fairlead that cannot be read."""
        if event.get("stage") != _STAGE:
            counts.begun += 1
            return True
        counts.created += 1
        self.created += 1
        annotations = _object(event.get("annotations"))
        if _is_decided(annotations):
            self.answered |= {key.partition("/")[0] for key in annotations if _OURS in key}
            counts.decided += 1
            self.decided += 1
            found = _records_of(event, annotations)
            self.records += found or ()
            return found is not None
        if _failed_open(annotations):
            counts.of_runs += 1
            self.failed_open += 1
        elif _is_of_run(event):
            counts.of_runs += 1
            self._pass_by(event)
        return True

    def _pass_by(self, event: dict[str, Any]) -> None:
        about, metadata = _object(event.get("objectRef")), _metadata(event)
        namespace = str(about.get("namespace") or metadata.get("namespace") or "")
        if exclusion_reason(namespace):
            return
        entries = frozenset(_entries(_texts(metadata.get("labels"))))
        found = self.passed_by.setdefault(entries, PassedBy())
        found.count += 1
        if len(found.names) < _NAMED:
            name = about.get("name") or metadata.get("name") or metadata.get("generateName")
            found.names.append(f"{namespace}/{name}")

    @property
    def unanswered(self) -> PassedBy:
        """Pods of runs that Fairlead did not evaluate, although such pods are sent to it.

        These are pods with Fairlead's own mark, or with a mark of other evaluated pods.
        """
        sent = self.answered | _OWN
        found = [each for entries, each in self.passed_by.items() if entries & sent]
        named = [name for each in found for name in each.names]
        return PassedBy(sum(each.count for each in found), named[:_NAMED])


@dataclass(slots=True)
class PassedBy:
    """How many pods, and the first of them."""

    count: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _LogCounts:
    """Counts of one log, and its first characters."""

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
                "it has no audit event: want the API server's audit log, an audit.k8s.io/v1 "
                f"Event in JSON a line; it begins with {text}"
            )
        if not self.created and self.begun:
            raise NoAnswer(
                f"{_pods(self.begun)}, none with the stage {_STAGE}, which has the "
                "annotations: remove it from omitStages in the API server's audit policy"
            )
        if not self.created:
            raise NoAnswer(
                f"{self.events} audit events, none of the creation of a pod: use a log of a "
                f"time when pods were created, and make the audit policy record them: {_RULE}"
            )
        if self.of_runs:
            raise NoAnswer(
                f"{_pods(self.created)}, {self.of_runs} of them of runs, and no annotation "
                "of Fairlead: make the audit policy record pods at the level Metadata or "
                "above, and keep annotations in the stored log; if the API server's own log "
                "has them, the webhook did not answer: run fairlead doctor"
            )


def _pods(count: int) -> str:
    return f"{count} creation{'' if count == 1 else 's'} of pods"


def _events(line: bytes) -> list[dict[str, Any]] | None:
    """Return the events of a line; None if it is not JSON."""
    try:
        value = _object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    items = value.get("items")
    return [*map(_object, items)] if isinstance(items, list) else [value]


def _creates_pod(event: dict[str, Any]) -> bool:
    """Return whether Fairlead decided on a pod, or one was created without it."""
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
    """Return whether the pod's own labels mark it; they are in the log from the level Request
    on."""
    metadata = _metadata(event)
    labels, annotations = _texts(metadata.get("labels")), _texts(metadata.get("annotations"))
    return identify(labels, annotations, {}) is not None


def _metadata(event: dict[str, Any]) -> dict[str, Any]:
    return _object(_object(event.get("requestObject")).get("metadata"))


def _entries(labels: dict[str, str]) -> Iterator[str]:
    """Yield the entries of the webhook's configuration for the marks among a pod's labels."""
    for source in SOURCES:
        for number, mark in enumerate(source.marks):
            value = None if mark.namespace else labels.get(mark.key)
            if value is not None and mark.value in (None, value):
                yield entry_name(source.name, number)


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in _object(value).items() if isinstance(text, str)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _records_of(event: dict[str, Any], annotations: dict[str, Any]) -> list[Record] | None:
    """Return a record for each policy under Audit; None if the annotation cannot be read."""
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
                reason="; ".join(reasons),
            )
            for policy, (outcome, reasons) in meant.items()
        ]
    return found


_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


class NoMetrics(FairleadError):
    """A text is not the webhook's metrics; the message shows what was found."""


def records_of_metrics(text: str) -> Iterator[Record]:
    """Yield a record for each series of one replica: counted since that replica began.

    Raises NoMetrics if the text is not in Prometheus' text format, or is not the webhook's.
    """
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise NoMetrics(f"no metrics in Prometheus' text format: {error}") from None
    # Declared without the ending of its samples.
    declared = (AUDITED_DECISIONS, AUDITED_DECISIONS.removesuffix("_total"))
    if not any(family.name in declared for family in families):
        raise NoMetrics(
            f"no {AUDITED_DECISIONS} among the metrics: want the output of /metrics of a "
            "replica of the webhook, which always has it"
        )
    for family in families:
        for sample in family.samples:
            if sample.name == AUDITED_DECISIONS and sample.value:
                yield _record_of(sample.labels, sample.value)


def _record_of(labels: Mapping[str, str], value: float) -> Record:
    try:
        outcome = _outcome(labels["outcome"])
        return Record(labels["namespace"], labels["policy"], outcome, int(value))
    except (KeyError, ValueError, OverflowError):
        pairs = ", ".join(f"{key}={text!r}" for key, text in labels.items())
        raise NoMetrics(
            f"{AUDITED_DECISIONS}{{{pairs}}} {value}: want a number of pods by policy, "
            "namespace and outcome: of another version?"
        ) from None


def _outcome(text: str) -> Outcome:
    found = [each for each in _OUTCOMES if each == text]
    if not found:
        raise NoMetrics(
            f"outcome {text!r} is not one of {', '.join(_OUTCOMES)}: of another version?"
        )
    return found[0]
