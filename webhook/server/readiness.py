"""Readiness conditions, each with a reason, and the parts of a process that have them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client
    from webhook.kube.watches import Watches
    from webhook.server.webhook_metrics import Metrics


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of one condition of readiness. `reason` is for people."""

    ready: bool
    reason: str


# Evaluated for every probe, on the event loop: a condition must not wait.
Conditions: TypeAlias = Mapping[str, Callable[[], Condition]]


def evaluate(conditions: Conditions) -> dict[str, Condition]:
    """Evaluate every condition; one that raises is not ready, with the exception as reason."""
    return {name: _evaluate(condition) for name, condition in conditions.items()}


def _evaluate(condition: Callable[[], Condition]) -> Condition:
    try:
        return condition()
    except Exception as error:  # a condition that fails must not stop the process
        return Condition(ready=False, reason=f"{type(error).__name__}: {error}")


class Cluster(NamedTuple):
    """The watches of the API server's objects, and the namespace that this process is in."""

    watches: Watches
    namespace: str

    @property
    def client(self) -> Client:
        """The API server's client."""
        return self.watches.client


@dataclass(slots=True)
class Parts:
    """The parts of the webhook's process: conditions by name, and tasks that run while it serves.

    `home` is None without a cluster.
    """

    metrics: Metrics
    home: Cluster | None = None
    conditions: dict[str, Callable[[], Condition]] = field(default_factory=dict)
    background: list[Callable[[], Coroutine[Any, Any, object]]] = field(default_factory=list)

    def add(
        self,
        name: str,
        condition: Callable[[], Condition],
        *background: Callable[[], Coroutine[Any, Any, object]],
    ) -> None:
        """Add a condition, and the tasks that keep it current."""
        self.conditions[name] = condition
        self.background += background


def age(cache: Cache[Any]) -> float:
    """Seconds since the last event or bookmark of the API server; infinite before the first."""
    age = cache.age()
    return float("inf") if age is None else age
