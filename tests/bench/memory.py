"""Measures the memory of a serving process over many reviews."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Final

from tests.bench import arena, pods, reviews
from tests.bench.client import ask_all, post
from tests.bench.process import resident_mib
from webhook.progress import Progress

_SIZES: Final = (2_000, 4_000, 6_000, 10_000)
_DIFFERENT: Final = 400


@dataclass(frozen=True)
class MemoryResult:
    """MiB resident after so many reviews, the first after none; reviews answered a second."""

    resident: dict[int, float]
    rate: float


def measure(checkpoints: list[int], progress: Progress, say: Callable[[str], None]) -> MemoryResult:
    """Post reviews to `fairlead serve` over several connections, up to the last checkpoint."""
    requests = _requests()
    with arena.serving(("etcd", "kube-apiserver"), progress) as (plane, webhook):
        pid = plane.pids[webhook.name]
        connect = partial(arena.to_webhook, arena.port_of(webhook.url), webhook.authority)
        resident = {0: resident_mib(pid)}
        done, took = 0, 0.0
        for checkpoint in checkpoints:
            began = time.perf_counter()
            ask_all(connect, requests, checkpoint - done)
            took += time.perf_counter() - began
            done = checkpoint
            resident[done] = resident_mib(pid)
            say(f"{done} reviews: {resident[done]:.1f} MiB")
    return MemoryResult(resident, done / took)


def _requests() -> list[bytes]:
    """Reviews of pods that differ in size, name, run and labels."""
    manifests = [pods.manifest(size) for size in _SIZES]
    requests = []
    for number, manifest in zip(range(_DIFFERENT), cycle(manifests)):
        labels = {
            **manifest["metadata"]["labels"],
            "fairlead.dev/run": f"run-{number}",
            "project": f"project-{number}",
        }
        metadata = {"generateName": f"run-{number}-", "labels": labels}
        pod = reviews.as_sent({**manifest, "metadata": metadata})
        uid = f"0df28fbd-5f0a-4c3c-9d43-{number:012}"
        requests.append(post("/mutate?timeout=3s", reviews.review(pod, uid), arena.AGENT))
    return requests
