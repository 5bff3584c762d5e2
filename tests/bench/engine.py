"""Measures the engine alone: a review's bytes in, the answer's bytes out, in this process."""

from __future__ import annotations

import contextlib
import gc
import random
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import orjson

from tests.bench import pods, reviews
from tests.bench.policies import files
from webhook.admission import review
from webhook.decision import audit
from webhook.decision.advice import warnings
from webhook.decision.arrival import DEFAULT_TOLERATION_SECONDS, Arrival, Cluster
from webhook.decision.engine import decide
from webhook.decision.prospects import Prospects
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet

POLICIES: Final = (1, 10, 100, 1000)
SIZES: Final = (2_000, 10_000, 50_000)
_MATCHING: Final = 2
_UID: Final = "0df28fbd-5f0a-4c3c-9d43-9a3c1f9a0f11"
Key = TypeVar("Key", bound=Hashable)
_CLUSTER: Final = Cluster("", DEFAULT_TOLERATION_SECONDS)


@dataclass(frozen=True)
class EngineResult:
    """Medians in microseconds, one a round, by (policies, size); real sizes of pods in bytes."""

    rounds: dict[tuple[int, int], list[float]]
    bytes_of: dict[int, int]


def answer(body: bytes, policies: PolicySet, prospects: Prospects | None = None) -> bytes:
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


def body_of(size: int) -> bytes:
    """The review of a pod of about `size` bytes."""
    return reviews.review(reviews.as_sent(pods.manifest(size)), _UID)


def measure(rounds: int, calls: int) -> EngineResult:
    """Time `calls` calls for every number of policies and size of pod, in each of the rounds."""
    sets = {count: load(files(count, _MATCHING)).policies for count in POLICIES}
    bodies = {size: body_of(size) for size in SIZES}
    cells = {
        (count, size): partial(answer, bodies[size], sets[count])
        for count in POLICIES
        for size in SIZES
    }
    sizes = {size: len(orjson.dumps(reviews.as_sent(pods.manifest(size)))) for size in SIZES}
    return EngineResult(in_rounds(cells, rounds, calls), sizes)


@contextlib.contextmanager
def frozen() -> Iterator[None]:
    """As `fairlead serve` does: what is there to stay is walked by no collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def in_rounds(
    cells: Mapping[Key, Callable[[], object]], rounds: int, calls: int
) -> dict[Key, list[float]]:
    """The median time of a call in microseconds, one a round, by cell.

    Within a round the cells go in random order. Before the first one another fills caches, and
    what the interpreter specialises.
    """
    result: dict[Key, list[float]] = {cell: [] for cell in cells}
    with frozen():
        for at in range(rounds + 1):
            for cell in random.sample(list(cells), len(cells)):
                figure = timed(cells[cell], calls)
                if at:
                    result[cell].append(figure)
    return result


def timed(call: Callable[[], object], calls: int) -> float:
    """The median time of one call, in microseconds."""
    clock = time.perf_counter_ns
    durations = []
    for _ in range(calls):
        began = clock()
        call()
        durations.append(clock() - began)
    return statistics.median(durations) / 1000
