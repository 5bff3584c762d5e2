"""The metrics of watches, as both programs write them and doctor reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from tests.controller.runs import Api
from webhook import metric_names
from webhook.api_paths import NODES, CollectionPath
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.kube.failing_writes import FailingWrites, Write
from webhook.kube.watches import Watches, WatchState
from webhook.server.watch_metrics import WatchMetrics, read_state


def exposed() -> tuple[CollectorRegistry, Watches]:
    registry, watches = CollectorRegistry(), Watches(Api().client)
    WatchMetrics(registry, watches)
    return registry, watches


def test_what_doctor_reads_is_what_the_programs_write() -> None:
    """Every number, by one table; a cache without any news is infinitely old."""
    registry, watches = exposed()
    watch = watches.add(
        CollectionPath("v1", "pods"), Cache(lambda raw: raw["value"], clock=lambda: 7.0)
    )
    assert read_state(generate_latest(registry).decode()).watches["pods"].age == float("inf")
    watch.cache.touch()
    watch.cache.keep({"metadata": {"name": "odd"}})
    watch.lists, watch.watches, watch.errors, watch.restarts = 2, 3, 5, 1
    watches.add(NODES, Cache(lambda raw: raw["value"]))
    found = read_state(generate_latest(registry).decode()).watches
    assert found == watches.states()
    expected = WatchState(left_out=1, lists=2, opened=3, errors=5, restarts=1, unreadable=1)
    assert found["pods"] == expected
    assert set(found) == {"pods", "nodes"}


def test_a_watch_that_is_removed_has_counters_and_no_age() -> None:
    """Nothing is old that is not watched any more."""
    registry, watches = exposed()
    watch = watches.add(
        CollectionPath("kubeflow.org/v1", "pytorchjobs"), Cache(lambda raw: raw["value"])
    )
    watch.lists = 4
    watches.remove(watch)
    labels = {"resource": "pytorchjobs"}
    assert registry.get_sample_value(metric_names.LISTS, labels) == 4
    assert registry.get_sample_value(metric_names.CACHE_AGE, labels) == 0


def test_an_exposition_of_an_older_version_has_what_it_has() -> None:
    """doctor may be newer than what it looks at."""
    text = 'fairlead_cache_age_seconds{resource="pods"} 640.0\nother_total 3\n'
    assert read_state(text) == ({"pods": WatchState(age=640.0)}, {}, False)
    assert [read_state(f"fairlead_leader {each}\n").leads for each in (0.0, 1.0)] == [False, True]


def test_doctor_reads_which_writes_fail() -> None:
    """And since when; one that succeeds has the value 0."""
    registry, watches = exposed()
    clock = iter([0.0, 640.0, 650.0])
    writes = watches.client.failing_writes = FailingWrites(lambda: next(clock))
    pods = CollectionPath("v1", "pods", "x")
    for _ in range(2):
        writes.note("POST", pods, ClusterError("no answer"))
    writes.note("PUT", pods.path_of("x"), None)
    text = generate_latest(registry).decode()
    assert f'{metric_names.WRITE_FAILING}{{resource="pods",verb="PUT"}} 0.0' in text
    assert read_state(text).failing_writes == {Write("POST", "pods"): 640.0}
