"""Metrics count what happened, under labels whose number is bounded."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

from webhook import metric_names
from webhook.server.webhook_metrics import Metrics

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _samples(metrics: Metrics) -> dict[str, float]:
    """Return the exposition's samples, each by its name with labels."""
    body, _ = asyncio.run(metrics.render(""))
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_requests_are_counted_by_result_and_code_and_timed() -> None:
    """The same labels count up, others stand apart, and the histogram has the seconds."""
    metrics = Metrics()
    metrics.request_answered("patched", 200, 0.0003)
    metrics.request_answered("patched", 200, 0.002)
    metrics.request_answered("invalid", 400, 0.0)
    samples = _samples(metrics)
    assert samples['fairlead_admission_requests_total{code="200",result="patched"}'] == 2
    assert samples['fairlead_admission_requests_total{code="400",result="invalid"}'] == 1
    assert samples['fairlead_admission_duration_seconds_bucket{le="0.0005"}'] == 2
    assert samples['fairlead_admission_duration_seconds_bucket{le="+Inf"}'] == 3


def test_decisions_are_counted_once_for_each_policy() -> None:
    """A decision of two policies counts for both, one of none under the empty name."""
    metrics = Metrics()
    metrics.decided("patched", ("spot", "gpu"))
    metrics.decided("patched", ("spot",))
    metrics.decided("unchanged", ())
    samples = _samples(metrics)
    assert samples['fairlead_decisions_total{policy="spot",result="patched"}'] == 2
    assert samples['fairlead_decisions_total{policy="gpu",result="patched"}'] == 1
    assert samples['fairlead_decisions_total{policy="",result="unchanged"}'] == 1


def test_the_last_match_and_the_refusals_of_a_policy_are_reported() -> None:
    """Each match moves the time on, a refusal counts for who refused, and a set forgets others."""
    now = 1000.0
    metrics = Metrics(clock=lambda: now)
    metrics.decided("placed", ("spot", "gpu"))
    now = 2000.0
    metrics.decided("rejected", ("gpu",))
    metrics.count(metric_names.POLICY_REJECTIONS, "gpu")
    metrics.decided("unchanged", ())
    samples = _samples(metrics)
    times = "fairlead_policy_last_match_timestamp_seconds"
    assert [samples[f'{times}{{policy="{name}"}}'] for name in ("spot", "gpu")] == [1000, 2000]
    assert samples['fairlead_policy_rejections_total{policy="gpu"}'] == 1
    metrics.policies_loaded("b2", {"spot"}, NOW)
    kept = {name for name in _samples(metrics) if "policy=" in name}
    assert kept == {
        f'{times}{{policy="spot"}}',
        'fairlead_labels_left_out_total{policy="spot"}',
        'fairlead_policy_rejections_total{policy="spot"}',
        'fairlead_decisions_total{policy="spot",result="placed"}',
        'fairlead_decisions_total{policy="",result="unchanged"}',
    }
    metrics.decided("rejected", ("gpu",))
    metrics.count(metric_names.POLICY_REJECTIONS, "gpu")
    assert _samples(metrics)['fairlead_policy_rejections_total{policy="gpu"}'] == 1


def test_exceptions_that_are_gone_leave_no_series() -> None:
    metrics = Metrics()
    for exception, policy in (("anna", "kept"), ("anna", "old"), ("gone", "kept")):
        metrics.count(metric_names.EXCEPTIONS_APPLIED, exception, policy)
    name = "fairlead_exceptions_applied_total"
    assert len([each for each in _samples(metrics) if each.startswith(name)]) == 3
    metrics.policies_loaded("b2", {"kept"}, NOW, {"anna"})
    left = [each for each in _samples(metrics) if each.startswith(name)]
    assert left == [f'{name}{{exception="anna",policy="kept"}}']


def test_exactly_one_policy_set_is_exposed() -> None:
    """The info metric has the hash that serves now, and the time says when it was loaded."""
    metrics = Metrics()
    metrics.policies_loaded("a1", set(), NOW)
    metrics.count(metric_names.POLICY_RELOADS, "refused")
    metrics.policies_loaded("b2", set(), NOW)
    samples = _samples(metrics)
    infos = {name for name in samples if name.startswith("fairlead_policy_set_info")}
    assert infos == {'fairlead_policy_set_info{hash="b2"}'}
    assert samples["fairlead_policy_set_loaded_timestamp_seconds"] == NOW.timestamp()
    assert samples['fairlead_policy_reload_total{outcome="loaded"}'] == 2
    assert samples['fairlead_policy_reload_total{outcome="refused"}'] == 1


def test_counters_are_there_before_the_first_event() -> None:
    """A rate over a series that begins at one would miss that first event."""
    samples = _samples(Metrics())
    assert samples["fairlead_engine_errors_total"] == 0
    assert samples['fairlead_policy_reload_total{outcome="refused"}'] == 0


def test_gauges_are_read_at_the_scrape() -> None:
    """Requests in flight come from their callback, as they are then."""
    metrics = Metrics()
    in_flight = 7
    metrics.read_gauge(metric_names.ADMISSION_IN_FLIGHT, lambda: in_flight)
    metrics.certificate_served(NOW)
    assert _samples(metrics)["fairlead_admission_in_flight"] == 7
    in_flight = 8
    samples = _samples(metrics)
    assert samples["fairlead_admission_in_flight"] == 8
    assert samples["fairlead_certificate_expiry_timestamp_seconds"] == NOW.timestamp()


def test_rendering_leaves_the_event_loop_alone() -> None:
    metrics = Metrics()
    threads: list[int] = []

    def connections() -> float:
        threads.append(threading.get_ident())
        return 0.0

    metrics.read_gauge(metric_names.CONNECTIONS, connections)
    _samples(metrics)
    assert threads
    assert threading.get_ident() not in threads


def test_the_format_is_the_one_asked_for() -> None:
    """Prometheus asks for OpenMetrics by its Accept header, and gets it."""
    metrics = Metrics()
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    body, content_type = asyncio.run(metrics.render(accept))
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
