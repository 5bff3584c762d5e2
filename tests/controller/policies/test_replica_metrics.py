"""What a replica has counted is read from its own exposition."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from webhook import metric_names
from webhook.controller.policies.replica_metrics import report_of
from webhook.judgement.reporting.decision_counts import Count
from webhook.server.webhook_metrics import Metrics

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def exposition(metrics: Metrics) -> str:
    return asyncio.run(metrics.render(""))[0].decode()


def test_each_policy_has_all_its_results_under_one_count() -> None:
    """Placed, rejected or under Audit; refused is only what the policy refused itself."""
    metrics = Metrics(clock=lambda: NOW.timestamp())
    metrics.policies_loaded("0123456789abcdef0123", ["spot", 'odd"name', "idle"], NOW)
    metrics.decided("placed", ("spot", 'odd"name'))
    metrics.decided("rejected", ("spot", 'odd"name'))
    metrics.count(metric_names.POLICY_REJECTIONS, "spot")
    metrics.decided("audit-changes", ("spot",))
    metrics.decided("unchanged", ())
    report = report_of(exposition(metrics))
    assert report.hash == "0123456789abcdef"
    assert report.counts == {
        "spot": Count(3, 1, "2026-03-01T12:00:00Z"),
        'odd"name': Count(2, 0, "2026-03-01T12:00:00Z"),
        "idle": Count(0, 0, ""),
    }


def test_a_process_is_identified_by_its_start_time() -> None:
    metrics = Metrics()
    assert report_of(exposition(metrics)).process == report_of(exposition(metrics)).process != ""


def test_a_replica_without_a_set_has_no_hash() -> None:
    assert report_of(exposition(Metrics())).hash == ""


def test_an_answer_without_metrics_is_an_error() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        report_of('fairlead_decisions_total{policy="p"} many')
