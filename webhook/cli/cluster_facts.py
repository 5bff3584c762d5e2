"""What decisions need to know of the cluster: from its API server, or from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.cli.cluster_file import read_cluster_file
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from webhook.admission.grounds import NamespaceLabels
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client
    from webhook.kube.reflector import Reflector
    from webhook.server.metrics import Metrics
    from webhook.server.readiness import Conditions


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts, whether they are known yet, and what has to run to keep them current."""

    namespaces: NamespaceLabels
    default_priority_class: Callable[[], str | None]
    conditions: Conditions
    background: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = ()


def facts_from_file(path: Path) -> ClusterFacts:
    """The facts in a file. Raises UnreadableInput."""
    file = read_cluster_file(path)
    known = Condition(ready=True, reason=f"{len(file.namespaces)} from {path}")
    return ClusterFacts(file, lambda: file.default_priority_class, {"namespaces": lambda: known})


def facts_from_cluster(client: Client, metrics: Metrics) -> ClusterFacts:
    """The facts as the API server tells them; one that does not answer is asked again."""
    # The Kubernetes client takes its time to be imported, and without a cluster nobody needs it.
    from webhook.kube.namespaces import Namespaces
    from webhook.kube.priority_classes import PriorityClasses

    namespaces, classes = Namespaces(client), PriorityClasses(client)
    metrics.watch_cache("namespaces", lambda: age(namespaces.cache))
    metrics.watch_cache("priorityclasses", lambda: age(classes.cache))
    return ClusterFacts(
        namespaces,
        lambda: classes.default,
        {
            "namespaces": lambda: synced(namespaces.cache, namespaces.reflector),
            "priority-classes": lambda: synced(classes.cache, classes.reflector),
        },
        (namespaces.run, classes.run),
    )


def age(cache: Cache[Any]) -> float:
    """Seconds since the API server last said anything; infinite if it never did."""
    age = cache.age()
    return float("inf") if age is None else age


def synced(cache: Cache[Any], reflector: Reflector[Any]) -> Condition:
    """Whether a cache has been filled, and how old it is."""
    # What was synced once stays ready: old labels are mostly right, and no answer never is.
    error = f"; {reflector.last_error}" if reflector.last_error else ""
    if not cache.synced:
        return Condition(ready=False, reason=f"not listed yet{error}")
    return Condition(ready=True, reason=f"last heard of {age(cache):.0f} s ago{error}")
