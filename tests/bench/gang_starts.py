"""Runs of replicas that meet, on nodes with room for a quarter of them, beside Jobs of one pod.

The same Runs start all at once, by Kueue's quota, and each replica by itself. Each arm has a
control plane of its own: what one leaves behind would hold the next one's nodes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.spread import ratio, spread
from tests.bench.tables import page, table
from tests.chaos.gangs import GPU, Play, settings
from tests.cluster.live_runs import ALONE
from tests.cluster.spaces import Json, Space
from tests.objects import an_object
from tests.operators.conftest import with_runs
from webhook import names
from webhook.installation.manifests import render
from webhook.progress import Lines
from webhook.sandbox.binaries import ALL, obtain_binaries, obtain_kubectl
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator, obtain_operators
from webhook.sandbox.operators.install import install_operator, plan_installation, start_operator
from webhook.sandbox.operators.table import operators

GANG: Final = "gang"
KUEUE: Final = "kueue"
PLAIN: Final = "plain"
TITLES: Final = {
    GANG: "Run with `gang`",
    KUEUE: "Run in a queue of Kueue",
    PLAIN: "Run without either",
}
SIZE: Final = 8
# Seconds between two Jobs.
JOB_EVERY: Final = 3.0
_QUEUE: Final = "gpu"
_QUEUE_API: Final = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True)
class Amounts:
    """How many gangs there are, how many of them have room, Jobs, and seconds until it is over."""

    gangs: int
    room: int
    jobs: int
    budget: float


@dataclass(frozen=True)
class Result:
    """What became of the gangs of one arm. last: seconds until all that ended had; held:
    GPU-seconds of Runs that were not whole."""

    gangs: int
    ended: int
    mean: float
    last: float
    held: float


def measure(amounts: Amounts, rounds: int, lines: Lines) -> Mapping[str, Sequence[Result]]:
    """Play each arm in each round."""
    binaries = obtain_binaries(ALL, lines)
    kubectl = obtain_kubectl(lines)
    kueue = obtain_operators([operators()[KUEUE]], lines)[KUEUE]
    results: dict[str, list[Result]] = {arm: [] for arm in TITLES}
    for arm in list(TITLES) * rounds:
        with tempfile.TemporaryDirectory() as folder, lines.step(f"gangs: {TITLES[arm]}"):
            where = Path(folder) / "state"
            with ControlPlane(where, binaries, settings(amounts.room * SIZE)) as plane:
                administrator = Kubectl(kubectl, plane.kubeconfig)
                if arm == KUEUE:
                    _start_kueue(plane, administrator, kueue, amounts.room * SIZE)
                plane.create_namespace("lab")
                space = Space(plane, administrator.within("lab"), "lab")
                if arm == KUEUE:
                    local = {"clusterQueue": _QUEUE}
                    space.create(an_object(_QUEUE_API, "LocalQueue", _QUEUE, local))
                start_controller(plane, options=(*ALONE, "--no-policy-status"))
                results[arm].append(_play(space, arm, amounts))
    return results


def _play(space: Space, arm: str, amounts: Amounts) -> Result:
    play = Play(space, SIZE, gang=arm == GANG)
    if arm == KUEUE:
        play.labels = {names.KUEUE_QUEUE: _QUEUE}
    for number in range(amounts.gangs):
        play.create(number)
    begin = time.monotonic()
    jobs = iter(range(amounts.jobs))

    def done() -> bool:
        passed = time.monotonic() - begin
        for number in jobs:
            play.job(number)
            if (number + 1) * JOB_EVERY > passed:
                break
        return len(play.ended) == amounts.gangs

    play.until(done, amounts.budget)
    ended = play.ended.values()
    mean = sum(ended) / len(ended) if ended else 0.0
    return Result(amounts.gangs, len(ended), mean, max(ended, default=0.0), play.held)


def _start_kueue(plane: ControlPlane, kubectl: Kubectl, built: BuiltOperator, quota: int) -> None:
    """Kueue runs, with a quota of all GPUs; it gives a Run all of its pods or none."""
    kubectl.create(*render((), ("backend-kueue",)).values())
    installation = with_runs(plan_installation(operators()[KUEUE], built))
    install_operator(plane, kubectl, installation)
    start_operator(plane, kubectl, installation)
    kubectl.create(*_queue(quota))


def _queue(quota: int) -> Iterator[Json]:
    resources = [{"name": GPU, "nominalQuota": str(quota)}]
    flavors = [{"name": "any", "resources": resources}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    yield an_object(_QUEUE_API, "ResourceFlavor", "any", {})
    spec: Json = {"namespaceSelector": {}, "resourceGroups": groups}
    yield an_object(_QUEUE_API, "ClusterQueue", _QUEUE, spec)


def page_of(results: Mapping[str, Sequence[Result]]) -> str:
    """The table, and the ratios."""
    rows = []
    for arm, rounds in results.items():
        seconds = [play.mean for play in rounds if play.ended]
        last = [play.last for play in rounds if play.ended]
        rows.append(
            [
                TITLES[arm],
                f"{spread(play.ended for play in rounds).text(0)} of {rounds[0].gangs}",
                spread(seconds).text(0) if seconds else "–",
                spread(last).text(0) if last else "–",
                spread(play.held for play in rounds).text(0),
            ]
        )
    held = {arm: [play.held for play in rounds] for arm, rounds in results.items()}
    mean = {arm: [play.mean for play in rounds] for arm, rounds in results.items()}
    head = ["", "ended", "seconds, mean", "seconds, last", "GPU-seconds held"]
    against = [
        ["held, plain / gang", ratio(held[PLAIN], held[GANG]).text(0)],
        ["held, gang / Kueue", ratio(held[GANG], held[KUEUE]).text(2)],
        ["mean time, gang / Kueue", ratio(mean[GANG], mean[KUEUE]).text(2)],
    ]
    return page(table(head, rows), table(["", "ratio"], against))
