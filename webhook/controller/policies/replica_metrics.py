"""Parse the metrics of one webhook replica, for statuses."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from prometheus_client.parser import text_string_to_metric_families

from webhook.decision.stamp import HASH_LENGTH
from webhook.judgement.reporting.decision_counts import Count, Report
from webhook.metric_names import (
    DECISIONS,
    POLICY_LAST_MATCH,
    POLICY_REJECTIONS,
    POLICY_SET,
)
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Mapping

_BEGAN: Final = "process_start_time_seconds"
_READ: Final = (DECISIONS, POLICY_REJECTIONS, POLICY_LAST_MATCH, POLICY_SET, _BEGAN)


def report_of(text: str) -> Report:
    """Return a replica's counters since its start. Raises ValueError if the text is invalid."""
    # Parse only the relevant lines out of thousands.
    lines = "\n".join(line for line in text.splitlines() if line.startswith(_READ))
    values: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    report = Report("", "", {})
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            if sample.name == POLICY_SET:
                report = report._replace(hash=sample.labels["hash"][:HASH_LENGTH])
            elif sample.name == _BEGAN:
                report = report._replace(process=repr(sample.value))
            elif sample.name in _READ and sample.labels.get("policy"):
                values[sample.labels["policy"]][sample.name] += sample.value
    return report._replace(counts={name: _count(samples) for name, samples in values.items()})


def _count(values: Mapping[str, float]) -> Count:
    at = values.get(POLICY_LAST_MATCH, 0.0)
    last = to_second(datetime.fromtimestamp(at, UTC)) if at else ""
    return Count(int(values.get(DECISIONS, 0)), int(values.get(POLICY_REJECTIONS, 0)), last)
