"""Reads what policies under Audit would have done from the metrics of the webhook's replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from prometheus_client.parser import text_string_to_metric_families

from webhook import names
from webhook.admission.audit import Outcome
from webhook.audited.tally import Record
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)


class NoMetrics(FairleadError):
    """A text is no metrics; what stands there is told."""


def records(text: str) -> Iterator[Record]:
    """A record for each series of one replica: counted since that replica began.

    Raises NoMetrics if the text is not in Prometheus' text format, or is not the webhook's.
    """
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise NoMetrics(f"no metrics in Prometheus' text format: {error}") from None
    if not any(family.name.removesuffix("_total") == names.METRIC_AUDITED for family in families):
        raise NoMetrics(
            f"no {names.METRIC_AUDITED}_total among the metrics: want what a replica of the "
            "webhook tells at /metrics, which has it from the beginning"
        )
    for family in families:
        for sample in family.samples:
            if sample.name == f"{names.METRIC_AUDITED}_total" and sample.value:
                yield _record(sample.labels, sample.value)


def _record(labels: Mapping[str, str], value: float) -> Record:
    try:
        outcome = _outcome(labels["outcome"])
        return Record(labels["namespace"], labels["policy"], outcome, int(value))
    except (KeyError, ValueError, OverflowError):
        said = ", ".join(f"{key}={text!r}" for key, text in labels.items())
        raise NoMetrics(
            f"{names.METRIC_AUDITED}_total{{{said}}} {value}: want a number of pods by policy, "
            "namespace and outcome: of another version?"
        ) from None


def _outcome(text: str) -> Outcome:
    found = [each for each in _OUTCOMES if each == text]
    if not found:
        raise NoMetrics(f"outcome {text!r} is none of {', '.join(_OUTCOMES)}: of another version?")
    return found[0]
