"""The metrics of watches, as both programs write them and doctor reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from tests.controller.runs import Api
from webhook import metric_names
from webhook.api_paths import NODES, CollectionPath
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches, WatchState
from webhook.server.watch_metrics import WatchMetrics, read_states


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
    assert read_states(generate_latest(registry).decode())["pods"].age == float("inf")
    watch.cache.touch()
    watch.cache.keep({"metadata": {"name": "odd"}})
    watch.lists, watch.watches, watch.errors, watch.restarts = 2, 3, 5, 1
    watches.add(NODES, Cache(lambda raw: raw["value"]))
    found = read_states(generate_latest(registry).decode())
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
    assert read_states(text) == {"pods": WatchState(age=640.0)}
