"""Measures deciding with the policies of a cluster, beside the same ones from files, and few."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.bench import policy_arena
from tests.bench.engine import answer, body_of, in_rounds
from tests.bench.policies import files
from webhook.judgement.set_judgement import Objects
from webhook.kube.client import connect
from webhook.kube.policy_objects import read_objects
from webhook.policy.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.policy.policy_set import PolicySet
    from webhook.sandbox.progress import Progress

POLICIES: Final = 1000
FEW: Final = 10
SIZE: Final = 10_000
CLUSTER: Final = "from the cluster"
FILES: Final = "from files"
TEN: Final = "10 from files"
ARMS: Final = (CLUSTER, FILES, TEN)


@dataclass(frozen=True)
class DecideResult:
    """Microseconds a review, one median a round, by arm."""

    rounds: dict[str, list[float]]


def measure(count: int, rounds: int, calls: int, progress: Progress) -> DecideResult:
    """Give an API server `count` policies, read them back, and decide with them."""
    with policy_arena.api_server(progress) as plane:
        with progress.step(f"{count} policies", about=count // 100):
            policy_arena.store(plane, count)
        cluster = asyncio.run(_read(plane.kubeconfig))
    sets = {
        CLUSTER: cluster,
        FILES: load(files(count, policy_arena.MATCHING)).policies,
        TEN: load(files(FEW, policy_arena.MATCHING)).policies,
    }
    if cluster.hash != sets[FILES].hash:
        raise RuntimeError("the API server gave back other policies than it was given")
    body = body_of(SIZE)
    cells = {arm: partial(answer, body, policies) for arm, policies in sets.items()}
    return DecideResult(in_rounds(cells, rounds, calls))


async def _read(kubeconfig: Path) -> PolicySet:
    async with connect(kubeconfig) as client:
        return Objects().load(await read_objects(client)).policies
