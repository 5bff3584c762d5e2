"""The controller's metrics."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.controller.runs import raw_node, raw_pod, stored_run
from webhook.controller.controller_metrics import RESULTS, STARTS, ControllerMetrics
from webhook.controller.node_health import Nodes
from webhook.controller.observed_state import ObservedState
from webhook.kube.cache import Cache
from webhook.run.model import RunStatus
from webhook.run.model.status import GangStatus, Usage

USAGE = (
    Usage(capacity_class="spot", resource="replicas", seconds=30, repeated_seconds=10),
    Usage(capacity_class="", resource="made.up/name", waiting_seconds=5),
    Usage(
        capacity_class="spot",
        resource="replicas",
        seconds=100,
        waiting_seconds=7,
        repeated_seconds=40,
    ),
)


def metrics() -> tuple[CollectorRegistry, ControllerMetrics]:
    registry = CollectorRegistry()
    return registry, ControllerMetrics(registry)


def test_what_is_done_is_counted() -> None:
    """Each with the labels that tell it apart."""
    registry, counted = metrics()
    counted.reconciled("done", 0.02)
    counted.written(RunStatus(), RunStatus(phase="Running", usage=USAGE[:1]))
    counted.written(RunStatus(usage=USAGE[:1]), RunStatus(phase="Pending", usage=USAGE[1:]))
    since = "2026-11-30T11:00:00Z"
    for before, after, held in (
        *(("Waiting", "Starting", 0), ("Starting", "Waiting", 60)),
        *(("Waiting", "Starting", 60), ("Starting", "Whole", 70), ("Whole", "Whole", 70)),
    ):
        counted.written(
            RunStatus(gang=GangStatus(state=before, since=since, held_seconds=min(held, 60) // 2)),
            RunStatus(gang=GangStatus(state=after, since=since, held_seconds=held)),
        )
    counted.pod_created()
    counted.pod_deleted()
    counted.creation_refused("QuotaExceeded")
    counted.count_request("POST", 201)
    counted.count_request("GET", None)
    counted.leads(leads=True)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"fairlead_{name}", labels)

    assert value("reconciles_total", result="done") == 1
    assert value("reconcile_duration_seconds_count") == 1
    assert value("run_transitions_total", before="Pending", after="Running") == 1
    for state, seconds in (("useful", 60), ("repeated", 40), ("waiting", 7)):
        of = {"capacity_class": "spot", "resource": "replicas", "state": state}
        assert value("run_usage_seconds_total", **of) == seconds
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    assert not any(sample.labels.get("resource") == "made.up/name" for sample in samples)
    starts = {each: value("gang_starts_total", result=each) for each in set(STARTS.values())}
    assert starts == {"begun": 2, "gave_way": 1, "whole": 1}
    assert value("gang_held_seconds_total") == 30 + 30 + 40 + 40
    assert value("pods_created_total") == value("pods_deleted_total") == 1
    assert value("creations_refused_total", reason="QuotaExceeded") == 1
    assert value("api_requests_total", verb="POST", code="201") == 1
    assert value("api_requests_total", verb="GET", code="none") == 1
    assert value("leader") == 1
    counted.leads(leads=False)
    assert value("leader") == 0


def test_time_that_is_taken_back_is_taken_from_what_comes_next() -> None:
    """A counter does not fall: a finished replica runs again, or a program had ended earlier."""
    registry, counted = metrics()

    def usage(seconds: int, repeated: int) -> RunStatus:
        row = Usage(resource="replicas", seconds=seconds, repeated_seconds=repeated)
        return RunStatus(usage=(row,))

    for before, after in (((0, 0), (30, 0)), ((30, 0), (30, 30)), ((30, 30), (70, 30))):
        counted.written(usage(*before), usage(*after))
    of = {"capacity_class": "", "resource": "replicas"}
    for state, seconds in (("useful", 40), ("repeated", 30)):
        name = "fairlead_run_usage_seconds_total"
        assert registry.get_sample_value(name, {**of, "state": state}) == seconds


def test_every_result_has_its_series_from_the_start() -> None:
    """One that begins with its first event hides that event from rate()."""
    registry, _ = metrics()
    for result in RESULTS:
        assert registry.get_sample_value("fairlead_reconciles_total", {"result": result}) == 0


def test_what_pods_use_has_its_series_before_it_is_counted() -> None:
    """Or the first attempt that is over would be hidden from rate(), with all its time."""
    registry, counted = metrics()
    for _ in range(2):
        counted.expect_usage({("", "replicas"), ("spot", "made.up/2")})
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    assert {
        (sample.labels["capacity_class"], sample.labels["resource"], sample.value)
        for sample in samples
        if sample.name == "fairlead_run_usage_seconds_total"
    } == {("", "replicas", 0), ("spot", "made.up/2", 0)}


def test_runs_and_numbers_are_read_at_each_scrape() -> None:
    """Runs by phase, a run of no phase yet among the pending."""
    registry, counted = metrics()
    known = ObservedState(clock=lambda: 100.0)
    depth = [3.0]
    numbers = (
        ("fairlead_queue_depth", "Waiting.", lambda: depth[0]),
        ("fairlead_api_throttled_total", "Told to wait.", lambda: 7.0),
    )
    counted.watch(known, numbers)
    known.runs.put("lab/a", stored_run(name="a"))
    known.runs.put("lab/b", stored_run(name="b"))
    known.runs.put("lab/b", stored_run(name="b", status={"phase": "Running"}))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"fairlead_{name}", labels)

    assert value("runs", phase="Pending") == value("runs", phase="Running") == 1
    assert value("runs", phase="Failed") == 0
    assert (value("queue_depth"), value("api_throttled_total")) == (3, 7)
    depth[0] = 5.0
    assert value("queue_depth") == 5


def test_a_scrape_walks_no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rendering thread holds up the event loop, too; there may be thousands of pods and nodes."""
    registry, counted = metrics()
    known = ObservedState()
    numbers = (("fairlead_leaving", "", known.pods_on_leaving_nodes),)
    counted.watch(known, numbers)
    known.runs.put("lab/a", stored_run(name="a"))
    for name in ("a", "b"):
        raw = {**raw_pod(0), "spec": {"nodeName": name}}
        known.pods.put(f"lab/{name}", known.pods.keep(raw))
        node = raw_node(name)
        node["spec"]["unschedulable"] = name == "b"
        known.nodes.cache.put(name, known.nodes.cache.keep(node))
    monkeypatch.delattr(Cache, "items")
    monkeypatch.delattr(Nodes, "get")
    assert registry.get_sample_value("fairlead_runs", {"phase": "Pending"}) == 1
    assert registry.get_sample_value("fairlead_leaving") == 1
    known.nodes.cache.put("b", None)
    assert registry.get_sample_value("fairlead_leaving") == 0
