"""What Runs used, by the class of their nodes, and an estimated price."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.api_paths import NODES, CollectionPath
from webhook.errors import ClusterError
from webhook.run_client.find_runs import Targets, find_runs
from webhook.shortening import count_text
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client
    from webhook.run.model.status import Usage


class RunCost(NamedTuple):
    """What a Run used until now, with its pods that live.

    cost: seconds on demand that the seconds on its nodes cost; None if a price is not known.
    useful: the seconds on nodes that were not repeated.
    """

    namespace: str
    name: str
    phase: str
    usage: Sequence[Usage]
    unseen: int
    cost: float | None
    useful: int

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        rows = [usage.model_dump(mode="json", by_alias=True) for usage in self.usage]
        return {**self._asdict(), "usage": rows}


def estimate_of(cost: RunCost) -> str:
    """Return what it cost, as far as prices are known; empty if they are not."""
    if cost.cost is None or not cost.useful:
        return ""
    share = round(100 * cost.cost / cost.useful)
    return (
        f"estimate: {format_span(cost.useful)} of useful time cost as much as "
        f"{format_span(cost.cost)} of a replica on demand: {share} %"
    )


async def fetch_costs(client: Client, targets: Targets) -> tuple[list[RunCost], list[str]]:
    """Return what these Runs used, and what is not known.

    Raises ClusterError, and NoSuchObject if there is none of a name.
    """
    runs = await find_runs(client, targets)
    costs, notes = await costs_of(client, targets.namespace, runs)
    if not runs:
        such = "such " if targets.selector else ""
        where = f" in namespace {targets.namespace}" if targets.namespace else ""
        notes.insert(0, f"there are no {such}Runs{where}")
    return costs, notes


async def costs_of(
    client: Client, namespace: str, runs: Sequence[dict[str, Any]]
) -> tuple[list[RunCost], list[str]]:
    """Return what these raw Runs used, of a namespace or of all, and what is not known.

    Raises ClusterError.
    """
    notes: list[str] = []
    state = await read_state(client, namespace, notes)
    prices = {
        class_name: capacity_class.spec.relative_price
        for class_name, capacity_class in state.nodes.classes.items().items()
        if capacity_class.spec.relative_price is not None
    }
    costs = [_cost(raw, state, prices, notes) for raw in runs]
    return costs, notes


async def read_state(client: Client, namespace: str, notes: list[str]) -> ObservedState:
    """Return the pods of Runs of a namespace, or of all, and the nodes with their classes.

    What may not be read is added to `notes`. Raises ClusterError.
    """
    from webhook.controller.observed_state import ObservedState

    state = ObservedState()
    classes = CollectionPath(names.API_VERSION, names.CAPACITY_CLASSES)
    pods = CollectionPath("v1", "pods", namespace or None)
    class_unknown = "the class of live pods is not known"
    for cache, path, query, lost in (
        (state.pods, pods, {"labelSelector": names.RUN_UID}, "pods that live do not count"),
        (state.nodes.cache, NODES, {}, class_unknown),
        (state.nodes.classes, classes, {}, class_unknown),
    ):
        cache.replace({}, "0")
        try:
            await _fill(client, cache, path, query)
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            if error.status == HTTPStatus.FORBIDDEN:
                notes.append(f"{lost}: {error}")
    return state


async def _fill(
    client: Client, cache: Cache[Any], path: CollectionPath, query: dict[str, str]
) -> None:
    def keep(raw: dict[str, Any]) -> tuple[str, Any]:
        metadata = raw["metadata"]
        place = filter(None, (metadata.get("namespace"), metadata["name"]))
        return "/".join(place), cache.keep(raw)

    listed = await client.list(path, keep, query=query)
    cache.replace({key: value for key, value in listed.items if value is not None}, "0")


def _cost(
    raw: dict[str, Any], state: ObservedState, prices: Mapping[str, float], notes: list[str]
) -> RunCost:
    from webhook.run.facts import collect_facts
    from webhook.run.reading import read_run
    from webhook.run.usage import REPLICAS, live_usage, sum_usage

    metadata = raw["metadata"]
    name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]
    reading = read_run(raw)
    run, status = reading.run, reading.status
    rows = list(status.usage)
    if run is None:
        notes.append(f"run {name}: this version cannot read its spec; pods that live do not count")
    elif run.spec.delegated or run.spec.serving:
        notes.append(f"run {name}: the time of pods that others create is not recorded")
    else:
        observed = state.observed(namespace, uid)
        rows += live_usage(status, collect_facts(run, observed), observed, datetime.now(UTC))
    if status.unseen:
        pods = count_text(status.unseen, "pod")
        why = "they vanished, or an older controller did not record it"
        notes.append(f"run {name}: the time of {pods} is not known: {why}")
    usage = sum_usage(rows)
    replicas = [row for row in usage if row.resource == REPLICAS and row.seconds]
    unpriced = [row.capacity_class for row in replicas if row.capacity_class not in prices]
    if prices and unpriced:
        text = ", ".join(
            f"class {class_name}" if class_name else "nodes without a class"
            for class_name in unpriced
        )
        notes.append(f"run {name}: no estimate, as there is no relativePrice of {text}")
    return RunCost(
        namespace,
        name,
        status.phase,
        usage,
        status.unseen,
        None
        if unpriced or not prices
        else sum(row.seconds * prices[row.capacity_class] for row in replicas),
        sum(row.seconds - row.repeated_seconds for row in replicas),
    )
