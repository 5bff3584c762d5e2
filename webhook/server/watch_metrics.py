"""The metrics of all watches and writes of a process, by resource: written, and read by doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from webhook import metric_names
from webhook.kube.failing_writes import Write
from webhook.kube.watches import WatchState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from webhook.kube.watches import Watches


class _Family(NamedTuple):
    """A metric of each resource: its name, the field of WatchState, and its help.

    A counter's name ends in _total.
    """

    name: str
    field: str
    documentation: str


_FAMILIES: Final = (
    _Family(
        metric_names.CACHE_AGE,
        "age",
        "Seconds since the last message from the API server to a cache.",
    ),
    _Family(
        metric_names.WATCH_FAILING,
        "failing",
        "Seconds for which a watch has failed again and again; 0 while it is open.",
    ),
    _Family(
        metric_names.WATCH_ERRORS,
        "errors",
        "Failed lists and watches, each of which is tried again.",
    ),
    _Family(
        metric_names.WATCH_RESTARTS,
        "restarts",
        "Watches that were started again after an unexpected exception: each one is a bug.",
    ),
    _Family(metric_names.LISTS, "lists", "Full lists read from the API server."),
    _Family(metric_names.WATCHES, "opened", "Watches opened at the API server."),
    _Family(
        metric_names.OBJECTS_LEFT_OUT,
        "left_out",
        "Objects that are left out now because they cannot be read; /readyz names them.",
    ),
    _Family(
        metric_names.OBJECTS_UNREADABLE,
        "unreadable",
        "Objects skipped because they cannot be read, counted at each read; the log names them.",
    ),
)
_FIELDS: Final = {family.name: family.field for family in _FAMILIES}


class WatchMetrics(Collector):
    """Reads the state of watches and writes at each scrape, on another thread."""

    def __init__(self, registry: CollectorRegistry, watches: Watches) -> None:
        self._watches = watches
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registration calls this before there are values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield each family with its value for every resource."""
        states = self._watches.states()
        for name, field, documentation in _FAMILIES:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name.removesuffix("_total"), documentation, labels=["resource"])
            for resource, state in states.items():
                family.add_metric([resource], getattr(state, field))
            yield family
        writes = GaugeMetricFamily(
            metric_names.WRITE_FAILING,
            "Seconds for which all writes of a resource have failed, such as for a missing right "
            "or without an answer of the API server; 0 if they succeed.",
            labels=Write._fields,
        )
        for write, seconds in self._watches.client.failing_writes.seconds().items():
            writes.add_metric(write, seconds)
        yield writes


class ReplicaState(NamedTuple):
    """What a process exposes: the state of its watches by resource, its failing writes with the
    seconds, and whether it is a controller that leads."""

    watches: Mapping[str, WatchState]
    failing_writes: Mapping[Write, float]
    leads: bool


def read_state(text: str) -> ReplicaState:
    """Return the states in an exposition; 0 for what it does not have of a resource.

    Raises ValueError if the text is not in Prometheus' format.
    """
    values: dict[str, dict[str, float]] = {}
    writes: dict[Write, float] = {}
    leads = False
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if field := _FIELDS.get(sample.name):
                values.setdefault(sample.labels["resource"], {})[field] = sample.value
            elif sample.name == metric_names.WRITE_FAILING and sample.value:
                writes[Write(sample.labels["verb"], sample.labels["resource"])] = sample.value
            leads = leads or (sample.name == metric_names.LEADER and sample.value == 1)
    watches = {
        resource: WatchState(
            age=samples.pop("age", 0.0),
            failing=samples.pop("failing", 0.0),
            **{field: int(value) for field, value in samples.items()},
        )
        for resource, samples in values.items()
    }
    return ReplicaState(watches, writes, leads)
