"""Results about policies in the cluster as Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.bench import nodes_decide, policy_memory
from tests.bench.spread import ratio, spread
from tests.bench.tables import page, table, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.nodes_decide import NodesDecide
    from tests.bench.policy_memory import PolicyMemory
    from tests.bench.policy_writes import BurstResult, WritesResult

# What the manifests give the webhook: more would have it killed.
_LIMIT_MIB = 512


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that at least this share of them, from 0 to 1, do not exceed."""
    figures = sorted(values)
    return figures[max(0, math.ceil(share * len(figures)) - 1)]


def nodes(result: NodesDecide) -> str:
    """Deciding with a look at the nodes, beside deciding without; and a node's change."""
    rows = [
        [arm, ratio(result.with_nodes[arm], figures).text(2)]
        for arm, figures in result.without.items()
    ]
    head = [
        f"10 KB pod, {nodes_decide.POLICIES} policies, {result.nodes:,} nodes",
        "with `--nodes`, times as long",
    ]
    changed = f"The change of a node: {spread(result.put).text(0)} µs."
    return f"{table(head, rows)}\n\n{changed}"


def writes(result: WritesResult) -> str:
    """From a write to the moment at which every replica serves by it."""
    lines = {
        "the API server has answered": result.answered,
        "the first replica uses it": result.first,
        f"all {result.replicas} replicas use it": result.every,
    }
    rows = [
        [name, *(f"{percentile(values, share):.0f}" for share in (0.5, 0.99, 1.0))]
        for name, values in lines.items()
    ]
    worst = percentile(result.every, 0.99)
    what = (
        f"Milliseconds from the moment before one of {result.policies:,} policies is written, "
        f"{len(result.every)} writes:"
    )
    return page(
        what,
        table(["until", "p50", "p99", "most"], rows),
        verdicts(("every replica, p99 under 1 s", f"{worst / 1000:.2f} s", worst < 1000)),
    )


def burst(result: BurstResult) -> str:
    """Many policies by one `kubectl apply --server-side`."""
    what = (
        f"One `kubectl apply --server-side` of {result.written} more policies takes "
        f"{result.seconds:.0f} s beside a webhook and a controller. Milliseconds of processor time "
        "for each write:"
    )
    used = sorted(result.processor.items(), key=lambda process: -process[1])
    rows = [[name, f"{seconds / result.written * 1000:.0f}"] for name, seconds in used]
    return page(
        what,
        table(["process", "ms"], rows),
        verdicts(
            ("no write fails", f"{result.failed} failed", result.failed == 0),
            ("at most 20 s", f"{result.seconds:.0f} s", result.seconds <= 20),
        ),
    )


def memory(result: PolicyMemory) -> str:
    """What a serving process holds, by policies, and with nodes."""
    policies, nodes = f"{result.policies:,}", f"{result.nodes:,}"
    titles = {
        policy_memory.FROM_FEW: f"{policy_memory.FEW} policies, from files",
        policy_memory.FROM_FILES: f"{policies} policies, from files",
        policy_memory.FROM_CLUSTER: f"{policies} policies, from the cluster",
        policy_memory.REWRITTEN: f"… and {result.writes:,} writes of one later",
        policy_memory.BESIDE_NODES: f"{policies} policies, {nodes} nodes in the cluster",
        policy_memory.WITH_NODES: "… with `--nodes`",
    }
    rows = [
        [title, f"{result.held[what].resident:.0f}", f"{result.held[what].highest:.0f}"]
        for what, title in titles.items()
    ]
    view = (
        result.held[policy_memory.WITH_NODES].resident
        - result.held[policy_memory.BESIDE_NODES].resident
    )
    most = max(each.highest for each in result.held.values())
    seen = (
        f"After {result.reviews:,} reviews each. The view of the nodes: {view:+.0f} MiB, "
        f"{view * 1024 / result.nodes:.1f} KiB a node."
    )
    limit = f"below the limit of the manifests, {_LIMIT_MIB} MiB"
    return page(
        table(["a serving process", "MiB resident", "at most until then"], rows),
        seen,
        verdicts((limit, f"{most:.0f} MiB at most", most < _LIMIT_MIB)),
    )
