"""Measures what `--nodes` costs: deciding with and without a look at the nodes, and a change."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.bench import pods, reviews
from tests.bench.engine import answer, in_rounds
from tests.bench.policies import files
from tests.bench.policy_memory import node
from webhook.cluster_objects.sharing import Sharing
from webhook.decision.prospects import Prospects
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import parse_node
from webhook.policy.load import load

NODES: Final = 5000
SIZE: Final = 10_000
POLICIES: Final = 100
_MATCHING: Final = 2
_UID: Final = "0df28fbd-5f0a-4c3c-9d43-9a3c1f9a0f11"

ADMITTED: Final = "a pod that some node admits"
HOPELESS: Final = "a pod that no node admits"
OTHERS: Final = "such pods, each with another selector"
CHANGED: Final = "a pod that no node admits, after a node changed"
ARMS: Final = (ADMITTED, HOPELESS, OTHERS, CHANGED)


@dataclass(frozen=True)
class NodesDecide:
    """Microseconds a review, one median a round, by arm: without the nodes, and with them.

    put: for the change of one node alone
    """

    nodes: int
    without: dict[str, list[float]]
    with_nodes: dict[str, list[float]]
    put: list[float]


def measure(count: int, rounds: int, calls: int) -> NodesDecide:
    """Decide on pods beside `count` nodes; within a round the arms go in random order."""
    policies = load(files(POLICIES, _MATCHING)).policies
    sharing = Sharing()
    there = [sharing.shared(parse_node(_node(at))) for at in range(count)]
    prospects = Prospects(NodeGroups(there))
    turns = itertools.cycle(there)

    def put() -> None:
        changed = next(turns)
        prospects.groups.update(changed.name, changed._replace(unschedulable=True))
        prospects.groups.update(changed.name, changed)

    def decided(arm: str, looks: bool) -> Callable[[], object]:
        bodies = _bodies(arm)

        def call() -> object:
            if looks and arm == CHANGED:
                put()
            return answer(next(bodies), policies, prospects if looks else None)

        return call

    cells = {(arm, looks): decided(arm, looks) for arm in ARMS for looks in (False, True)}
    found = in_rounds({**cells, ("", False): put}, rounds, calls)
    without, with_nodes = ({arm: found[arm, looks] for arm in ARMS} for looks in (False, True))
    # A change and the change back are two.
    return NodesDecide(count, without, with_nodes, [figure / 2 for figure in found["", False]])


def _bodies(arm: str) -> Iterator[bytes]:
    """Reviews without end; those of OTHERS differ in what they select."""
    selectors: list[dict[str, Any]] = [{}]
    if arm in (HOPELESS, CHANGED):
        selectors = [{"cloud.example.com/feature-1": "none"}]
    elif arm == OTHERS:
        selectors = [{f"cloud.example.com/feature-{at % 20}": f"none-{at}"} for at in range(1000)]
    made = [_body(selector) for selector in selectors]
    return itertools.cycle(made)


def _node(number: int) -> dict[str, Any]:
    """One pool of forty is that of the pods, with GPUs."""
    made = node(number)
    if number % 40 == 0:
        made["metadata"]["labels"]["pool"] = "experiments"
        made["status"]["allocatable"] |= {"nvidia.com/gpu": "8", "cpu": "95", "memory": "680Gi"}
    return made


def _body(selector: dict[str, str]) -> bytes:
    manifest = pods.manifest(SIZE)
    spec = {**manifest["spec"], "nodeSelector": selector} if selector else manifest["spec"]
    return reviews.review(reviews.as_sent({**manifest, "spec": spec}), _UID)
