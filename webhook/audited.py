"""Sum up what policies under Audit would have done: from metrics, and from evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from prometheus_client.parser import text_string_to_metric_families

from webhook.decision.decision import TOGETHER, Outcome
from webhook.errors import FairleadError
from webhook.metric_names import AUDITED_DECISIONS
from webhook.shortening import count_text, first_few, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.evaluation.replicas import Replicas

# Maximum number of objects, and of different reasons, that a row names.
EXAMPLES: Final = 3
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


class Record(NamedTuple):
    """One or more pods that a policy under Audit matched, or several of them: TOGETHER.

    `object` is the object that has these pods now; empty for pods that were counted. `reason` is
    the message that their author would get, or why it is not judged.
    """

    namespace: str
    policy: str
    outcome: Outcome
    pods: int
    object: str = ""
    reason: str = ""


@dataclass(slots=True)
class Counts:
    """Numbers of pods by what a policy would do to them."""

    rejects: int = 0
    changes: int = 0
    same: int = 0
    not_judged: int = 0

    @property
    def judged(self) -> int:
        """How many pods were judged."""
        return self.rejects + self.changes + self.same

    def __add__(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(
            self.rejects + other.rejects,
            self.changes + other.changes,
            self.same + other.same,
            self.not_judged + other.not_judged,
        )

    def __str__(self) -> str:
        if not self.judged:
            return f"has {count_text(self.not_judged, 'pod')} not judged"
        effects = {"reject": self.rejects, "change": self.changes}
        parts = [f"{word} {count:,}" for word, count in effects.items() if count]
        more = f" ({self.not_judged:,} more not judged)" if self.not_judged else ""
        what = " and ".join(parts) or "change none"
        return f"would {what} of {count_text(self.judged, 'pod')}{more}"


@dataclass(slots=True)
class Row:
    """What one policy would have done in one namespace, and what it would do to pods `now`.

    policy:   its name, or TOGETHER
    objects:  the first that have pods which it would reject or change
    rejected: those that have pods which it would reject; `reasons`: why
    unknown:  why it is not judged
    """

    namespace: str
    policy: str
    counted: Counts = field(default_factory=Counts)
    now: Counts = field(default_factory=Counts)
    objects: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def rejects(self) -> int:
        """How many pods it would have rejected, or would reject now."""
        return self.counted.rejects + self.now.rejects

    @property
    def not_judged(self) -> int:
        """How many pods it matched without being judged."""
        return self.counted.not_judged + self.now.not_judged


def tally(records: Iterable[Record]) -> Sequence[Row]:
    """Return a row for each namespace and policy, those that would reject most pods first."""
    rows: dict[tuple[str, str], Row] = {}
    for record in records:
        key = (record.namespace, record.policy)
        row = rows.setdefault(key, Row(*key))
        counts = row.now if record.object else row.counted
        name = record.outcome.replace("-", "_")
        setattr(counts, name, getattr(counts, name) + record.pods)
        if record.outcome == "same":
            continue
        judged = record.outcome != "not-judged"
        rejected = record.object if record.outcome == "rejects" else ""
        for text, examples in (
            (record.object if judged else "", row.objects),
            (rejected, row.rejected),
            (record.reason, row.reasons if judged else row.unknown),
        ):
            if text and text not in examples and len(examples) < EXAMPLES:
                examples.append(text)
    return sorted(
        rows.values(), key=lambda r: (-r.rejects, -r.counted.changes, r.namespace, r.policy)
    )


def records_of_pods(replicas: Replicas) -> Iterator[Record]:
    """Yield a record for each policy under Audit that matches these pods, and for all together."""
    audited = replicas.evaluation.audited
    if audited is None or replicas.decision.result == "not-sent":
        return
    namespace, title = replicas.arrival.namespace, replicas.template.source.title
    for policy, effect in audited.effects.items():
        reason = "; ".join(effect.rejections) if effect.outcome == "rejects" else effect.unknown
        pods = len(effect.nodes) or replicas.made
        yield Record(namespace, policy, effect.outcome, pods, title, reason)
        if pods < replicas.made:
            yield Record(namespace, policy, "changes", replicas.made - pods, title)


def answer_of(rows: Sequence[Row], *, counted: bool, now: bool, asked: bool) -> str:
    """Return what enforcing the policies under Audit would do, in one sentence.

    counted: whether it is known what the replicas counted
    now:     whether it is known what would become of the cluster's pods; `asked`: whether a
             cluster was asked
    """
    parts = []
    if now:
        effects = _by_policy((row.policy, row.now) for row in rows)
        parts.append(f"if enforced now: {effects}" if effects else "no policy matches a pod now")
    elif asked:
        parts.append("what would become of the cluster's pods is unknown")
    if counted:
        effects = _by_policy((row.policy, row.counted) for row in rows)
        parts.append(f"in what was counted: {effects}" if effects else "nothing was counted so far")
    else:
        parts.append("what was counted so far is unknown")
    return f"Policies under Audit: {'; '.join(parts)}"


def _by_policy(counts: Iterable[tuple[str, Counts]]) -> str:
    """Return what policies would do in all namespaces, those that reject most pods first."""
    sums: dict[str, Counts] = {}
    for policy, policy_counts in counts:
        if policy_counts.judged or policy_counts.not_judged:
            sums[policy] = sums.get(policy, Counts()) + policy_counts
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1].rejects, -pair[1].changes, pair[0]))
    return first_few(
        [f"{_name(policy)} {policy_counts}" for policy, policy_counts in ordered], EXAMPLES
    )


def _name(policy: str) -> str:
    return "all together" if policy == TOGETHER else one_line(policy)


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
    outcomes = [outcome for outcome in _OUTCOMES if outcome == text]
    if not outcomes:
        raise NoMetrics(
            f"outcome {text!r} is not one of {', '.join(_OUTCOMES)}: of another version?"
        )
    return outcomes[0]
