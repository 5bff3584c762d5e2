"""What one replica of the webhook says at /metrics, as far as statuses are made of it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from prometheus_client.parser import text_string_to_metric_families

from webhook import names
from webhook.admission.stamp import HASH_LENGTH
from webhook.policy.reporting.counting import Count, Report
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Mapping

DECIDED: Final = f"{names.METRIC_DECISIONS}_total"
REJECTED: Final = f"{names.METRIC_REJECTIONS}_total"
LAST_MATCH: Final = names.METRIC_LAST_MATCH
SET: Final = names.METRIC_SET
BEGAN: Final = "process_start_time_seconds"
_READ: Final = (DECIDED, REJECTED, LAST_MATCH, SET, BEGAN)


def report_of(text: str) -> Report:
    """What a replica has counted since it began. Raises ValueError if the text is no metrics."""
    # Of thousands of lines the parser sees those that mean something here.
    lines = "\n".join(line for line in text.splitlines() if line.startswith(_READ))
    values: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    found = Report("", "", {})
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            if sample.name == SET:
                found = found._replace(hash=sample.labels["hash"][:HASH_LENGTH])
            elif sample.name == BEGAN:
                found = found._replace(process=repr(sample.value))
            elif sample.name in _READ and sample.labels.get("policy"):
                values[sample.labels["policy"]][sample.name] += sample.value
    return found._replace(counts={name: _count(of) for name, of in values.items()})


def _count(values: Mapping[str, float]) -> Count:
    at = values.get(LAST_MATCH, 0.0)
    last = to_second(datetime.fromtimestamp(at, UTC)) if at else ""
    return Count(int(values.get(DECIDED, 0)), int(values.get(REJECTED, 0)), last)
