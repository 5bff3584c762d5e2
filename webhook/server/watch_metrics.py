"""The metrics of all watches of a process, by resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook import metric_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from webhook.kube.watches import Watches, WatchState


class _Family(NamedTuple):
    """A metric of each resource. A counter's name ends in _total."""

    name: str
    documentation: str
    value: Callable[[WatchState], float]


_FAMILIES: Final = (
    _Family(
        metric_names.CACHE_AGE,
        "Seconds since the last message from the API server to a cache.",
        lambda state: state.age,
    ),
    _Family(
        metric_names.WATCH_FAILING,
        "Seconds for which a watch has failed again and again; 0 while it is open.",
        lambda state: state.failing,
    ),
    _Family(
        metric_names.WATCH_ERRORS,
        "Failed lists and watches, each of which is tried again.",
        lambda state: state.errors,
    ),
    _Family(
        metric_names.WATCH_RESTARTS,
        "Watches that were started again after an unexpected exception: each one is a bug.",
        lambda state: state.restarts,
    ),
    _Family(metric_names.LISTS, "Full lists read from the API server.", lambda state: state.lists),
    _Family(metric_names.WATCHES, "Watches opened at the API server.", lambda state: state.opened),
    _Family(
        metric_names.OBJECTS_LEFT_OUT,
        "Objects that are left out now because they cannot be read; /readyz names them.",
        lambda state: state.left_out,
    ),
    _Family(
        metric_names.OBJECTS_UNREADABLE,
        "Objects skipped because they cannot be read, counted at each read; the log names them.",
        lambda state: state.unreadable,
    ),
)


class WatchMetrics(Collector):
    """Reads the state of the watches at each scrape, on another thread."""

    def __init__(self, registry: CollectorRegistry, watches: Watches) -> None:
        self._watches = watches
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registration calls this before there are values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield each family with its value for every resource."""
        states = self._watches.states()
        for name, documentation, value in _FAMILIES:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name.removesuffix("_total"), documentation, labels=["resource"])
            for resource, state in states.items():
                family.add_metric([resource], value(state))
            yield family
