"""Measures what `--nodes` costs: deciding with and without a look at the nodes, and a change."""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.bench import pods, reviews
from tests.bench.engine import timed
from tests.bench.policies import files
from tests.bench.policy_memory import node
from webhook.admission import audit, review
from webhook.admission.advice import warnings
from webhook.admission.arrival import DEFAULT_TOLERATION_SECONDS, Arrival, Cluster
from webhook.admission.engine import decide
from webhook.admission.prospects import Prospects
from webhook.kube.sharing import Sharing
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import parse_node
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet

NODES: Final = 5000
SIZE: Final = 10_000
POLICIES: Final = 100
_MATCHING: Final = 2
_UID: Final = "0df28fbd-5f0a-4c3c-9d43-9a3c1f9a0f11"
_CLUSTER: Final = Cluster("", DEFAULT_TOLERATION_SECONDS)

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

    bodies = {arm: _bodies(arm) for arm in ARMS}
    result = NodesDecide(count, {arm: [] for arm in ARMS}, {arm: [] for arm in ARMS}, [])
    cells = [(arm, looks) for arm in ARMS for looks in (False, True)]
    gc.collect()
    gc.freeze()
    try:
        for at in range(rounds + 1):
            for arm, looks in random.sample(cells, len(cells)):
                look = prospects if looks else None
                change = put if arm == CHANGED and looks else None
                figure = timed(_call(bodies[arm], policies, look, change), calls)
                if at:
                    (result.with_nodes if looks else result.without)[arm].append(figure)
            figure = timed(put, calls) / 2
            if at:
                result.put.append(figure)
    finally:
        gc.unfreeze()
    return result


def _call(
    bodies: Iterator[bytes],
    policies: PolicySet,
    prospects: Prospects | None,
    change: Callable[[], None] | None,
) -> Callable[[], object]:
    def call() -> object:
        if change is not None:
            change()
        return answer(next(bodies), policies, prospects)

    return call


def answer(body: bytes, policies: PolicySet, prospects: Prospects | None) -> bytes:
    """What the webhook does between reading a request and writing its answer."""
    request = review.parse(body)
    arrival = Arrival(request.pod, request.namespace, reviews.NAMESPACE_LABELS, request.user)
    decision = decide(arrival, policies, _CLUSTER)
    said = warnings(request.pod, decision)
    if prospects is not None and (text := prospects.unplaceable(request.pod, decision, policies)):
        said.append(text)
    return review.answer(
        request.uid,
        allowed=decision.allowed,
        message=decision.reason,
        patch=decision.patch,
        warnings=said,
        audit=audit.annotations_of(decision, policies.hash),
    )


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
