"""`fairlead run cost`: what Runs used, by the class of their nodes, and an estimated price."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.cli.layout import table
from webhook.cli.output import output_option, print_notes, print_result
from webhook.cli.run.cluster import RunName, Targets, find_runs, pods_path, target_options
from webhook.errors import InvalidRun, PassOver
from webhook.shortening import count_text, harmless
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cli.options import Kubeconfig
    from webhook.controller.observed_state import ObservedState
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client
    from webhook.run.model.status import Usage

_HEAD: Final = ("run", "class", "resource", "on nodes", "waiting", "repeated")
_NO_CLASS: Final = "-"


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
        rows = [each.model_dump(mode="json", by_alias=True) for each in self.usage]
        return {**self._asdict(), "usage": rows}


@click.command("cost")
@click.argument("name", required=False, default="", type=RunName())
@target_options
@click.option("-A", "--all-namespaces", is_flag=True, help="The Runs of all namespaces.")
@output_option()
def command(
    name: str,
    namespace: str,
    kubeconfig: Kubeconfig,
    all_namespaces: bool,
    output: str,
) -> None:
    """Show what the Run NAME used, or each Run of the namespace.

    A row is the time of replicas, or of an accelerator that they request, by the capacity class of
    their nodes: on nodes, without a node, and repeated. Repeated is the part on nodes that
    disruptions and failures ended: at most so much was done twice, for programs that write
    checkpoints less. Of several accelerators each counts.

    If each class has a relativePrice, an estimate follows: what the time on nodes costs, and what
    the same useful time would cost on demand.

    \b
    Examples:
      fairlead run cost mnist
      fairlead run cost -A -o json | jq '.runs[] | {name, cost, useful}'

    \b
    Exit codes:
      0  shown
      1  no such Run, or the cluster did not answer
      2  wrong usage
    """
    if all_namespaces and (name or namespace):
        raise click.UsageError("--all-namespaces excludes a name and --namespace")
    within = "" if all_namespaces else namespace or kubeconfig.namespace()
    costs, notes = kubeconfig.ask(lambda client: fetch_costs(client, within, name))
    print_result(
        output,
        json=lambda: {"runs": [each.document() for each in costs], "notes": notes},
        text=lambda: _lines(costs),
    )
    if output == "text":
        print_notes(notes)


def _lines(costs: Sequence[RunCost]) -> Iterator[str]:
    several = len({each.namespace for each in costs}) > 1
    shown = [f"{each.namespace}/{each.name}" if several else each.name for each in costs]
    rows = [
        (
            name,
            row.capacity_class or _NO_CLASS,
            harmless(row.resource),
            format_span(row.seconds),
            format_span(row.waiting_seconds),
            format_span(row.repeated_seconds),
        )
        for name, each in zip(shown, costs, strict=True)
        for row in each.usage
    ]
    if rows:
        yield from table([_HEAD, *rows], 0)
    for name, each in zip(shown, costs, strict=True):
        if not each.usage:
            yield f"{name}: no time yet"
        elif estimate := estimate_of(each):
            yield f"{name}: {estimate}"


def estimate_of(cost: RunCost) -> str:
    """Return what it cost, as far as prices are known; empty if they are not."""
    if cost.cost is None or not cost.useful:
        return ""
    share = round(100 * cost.cost / cost.useful)
    return (
        f"estimate: {format_span(cost.useful)} of useful time cost as much as "
        f"{format_span(cost.cost)} of a replica on demand: {share} %"
    )


async def fetch_costs(client: Client, namespace: str, name: str) -> tuple[list[RunCost], list[str]]:
    """Return what a Run used, or each Run of a namespace or of all, and what is not known.

    Raises ClusterError, and NoSuchObject if there is none of that name.
    """
    runs = await find_runs(client, Targets(namespace, (name,) if name else (), ""))
    return await costs_of(client, namespace, runs)


async def costs_of(
    client: Client, namespace: str, runs: Sequence[dict[str, Any]]
) -> tuple[list[RunCost], list[str]]:
    """Return what these raw Runs used, of a namespace or of all, and what is not known.

    Raises ClusterError.
    """
    notes: list[str] = []
    if not runs:
        notes.append(f"there are no Runs{f' in namespace {namespace}' if namespace else ''}")
    known = await read_state(client, namespace, notes)
    prices = {
        of: each.spec.relative_price
        for of, each in known.nodes.classes.items().items()
        if each.spec.relative_price is not None
    }
    costs = [_cost(raw, known, prices, notes) for raw in runs]
    return costs, notes


async def read_state(client: Client, namespace: str, notes: list[str]) -> ObservedState:
    """Return the pods of Runs of a namespace, or of all, and the nodes with their classes.

    What may not be read is added to `notes`. Raises ClusterError.
    """
    from webhook.controller.observed_state import ObservedState

    known = ObservedState()
    classes = f"/apis/{names.API_VERSION}/{names.CAPACITY_CLASSES}"
    pods = pods_path(namespace) if namespace else "/api/v1/pods"
    await _fill(client, known.pods, pods, {"labelSelector": names.RUN_UID})
    for cache, path, what in (
        (known.nodes.cache, "/api/v1/nodes", "nodes"),
        (known.nodes.classes, classes, "capacity classes"),
    ):
        cache.replace({}, "0")
        with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) as passed:
            await _fill(client, cache, path, {})
        if passed.status == HTTPStatus.FORBIDDEN:
            notes.append(f"you may not list {what}: the class of live pods is not known")
    return known


async def _fill(client: Client, cache: Cache[Any], path: str, query: dict[str, str]) -> None:
    def keep(raw: dict[str, Any]) -> tuple[str, Any]:
        metadata = raw["metadata"]
        place = filter(None, (metadata.get("namespace"), metadata["name"]))
        return "/".join(place), cache.keep(raw)

    listed = await client.list(path, keep, query=query)
    cache.replace({key: value for key, value in listed.items if value is not None}, "0")


def _cost(
    raw: dict[str, Any], known: ObservedState, prices: Mapping[str, float], notes: list[str]
) -> RunCost:
    from webhook.run.facts import collect_facts
    from webhook.run.model import RunStatus
    from webhook.run.run_documents import typed
    from webhook.run.usage import REPLICAS, live_usage, sum_usage

    metadata = raw["metadata"]
    name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]
    status = RunStatus.model_validate(raw.get("status") or {})
    rows = list(status.usage)
    try:
        run = typed(raw)
    except InvalidRun:
        notes.append(f"run {name}: this version cannot read its spec; pods that live do not count")
    else:
        if run.spec.delegated or run.spec.serving:
            notes.append(f"run {name}: the time of pods that others create is not recorded")
        else:
            observed = known.observed(namespace, uid)
            rows += live_usage(status, collect_facts(run, observed), observed, datetime.now(UTC))
    if status.unseen:
        pods = count_text(status.unseen, "pod")
        notes.append(f"run {name}: {pods} vanished, and their time is not known")
    usage = sum_usage(rows)
    replicas = [each for each in usage if each.resource == REPLICAS and each.seconds]
    unpriced = [each.capacity_class for each in replicas if each.capacity_class not in prices]
    if prices and unpriced:
        text = ", ".join(f"class {of}" if of else "nodes without a class" for of in unpriced)
        notes.append(f"run {name}: no estimate, as there is no relativePrice of {text}")
    return RunCost(
        namespace,
        name,
        status.phase,
        usage,
        status.unseen,
        None
        if unpriced or not prices
        else sum(each.seconds * prices[each.capacity_class] for each in replicas),
        sum(each.seconds - each.repeated_seconds for each in replicas),
    )
