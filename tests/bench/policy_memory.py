"""Measures the memory of serving processes: by number of policies, and with a view of the nodes."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from tests.bench import arena, policy_arena
from tests.bench.client import ask_all, patch, post
from tests.bench.policies import files
from tests.bench.policy_writes import serves, written
from tests.bench.process import highest_mib, resident_mib
from tests.objects import an_object
from webhook import names

if TYPE_CHECKING:
    from webhook.progress import Progress
    from webhook.sandbox.control_plane import ControlPlane

FEW: Final = 20
_SIZES: Final = (2_000, 10_000)


@dataclass(frozen=True)
class Held:
    """MiB resident after the reviews, and the most that it was until then."""

    resident: float
    highest: float


@dataclass(frozen=True)
class PolicyMemory:
    """What a process holds, by what it serves; and how many policies, nodes and reviews those are.

    `rewritten` is of a process that has seen so many writes beside.
    """

    policies: int
    nodes: int
    reviews: int
    writes: int
    held: dict[str, Held]


FROM_FEW: Final = "few"
FROM_FILES: Final = "files"
FROM_CLUSTER: Final = "cluster"
REWRITTEN: Final = "rewritten"
BESIDE_NODES: Final = "beside nodes"
WITH_NODES: Final = "with nodes"


def measure(
    policies: int,
    nodes: int,
    reviews: int,
    writes: int,
    progress: Progress,
    say: Callable[[str], None],
) -> PolicyMemory:
    """One process after the other, each asked `reviews` times before it is measured."""
    held: dict[str, Held] = {}

    def note(what: str, seen: Held) -> None:
        held[what] = seen
        say(f"{what}: {seen.resident:.1f} MiB, {seen.highest:.1f} at most")

    with policy_arena.api_server(progress) as plane, tempfile.TemporaryDirectory() as directory:
        with progress.step(f"{policies} policies", about=policies // 100):
            policy_arena.store(plane, policies)
            with arena.to_api_server(plane) as connection:
                path = policy_arena.collection(names.POLICY_KIND)
                policy_arena.create(connection, path, [written("w0")])
        for what, count in ((FROM_FEW, FEW), (FROM_FILES, policies)):
            folder = Path(directory) / what
            folder.mkdir()
            for name, content in files(count, policy_arena.MATCHING).items():
                (folder / name).write_bytes(content)
            with _asked(plane, folder, reviews) as seen:
                note(what, _held(seen))
        with _asked(plane, None, reviews) as seen:
            note(FROM_CLUSTER, _held(seen))
            _write(plane, writes)
            with seen.connect() as connection:
                serves(connection, policy_arena.review(_SIZES[0]), f"w{writes}")
            note(REWRITTEN, _held(seen))
        with progress.step(f"{nodes} nodes", about=nodes // 200):
            made = (orjson.dumps(node(at)) for at in range(nodes))
            requests = [post("/api/v1/nodes", each, arena.AGENT) for each in made]
            ask_all(partial(arena.to_api_server, plane), requests, wanted=201)
        with _asked(plane, None, reviews) as seen:
            note(BESIDE_NODES, _held(seen))
        with _asked(plane, None, reviews, "--nodes") as seen:
            note(WITH_NODES, _held(seen))
    return PolicyMemory(policies, nodes, reviews, writes, held)


def _held(replica: policy_arena.Replica) -> Held:
    return Held(resident_mib(replica.process.pid), highest_mib(replica.process.pid))


@contextlib.contextmanager
def _asked(
    plane: ControlPlane, folder: Path | None, count: int, *options: str
) -> Iterator[policy_arena.Replica]:
    """A serving process that has answered so many reviews over several connections."""
    replica = policy_arena.replica(plane, "replica", folder, *options)
    try:
        ask_all(replica.connect, [policy_arena.review(size) for size in _SIZES], count)
        yield replica
    finally:
        plane.stop_component("replica")


def _write(plane: ControlPlane, writes: int) -> None:
    """Change a policy so many times; a process that watches compiles for most of them."""
    path = f"{policy_arena.collection(names.POLICY_KIND)}/written"
    with arena.to_api_server(plane) as connection:
        for at in range(1, writes + 1):
            connection.must(patch(path, orjson.dumps(written(f"w{at}")), arena.AGENT))


def node(number: int) -> policy_arena.Json:
    """A node as clouds make them: about thirty labels, some annotations, forty images; 10 KB."""
    name = f"gke-research-pool-{number % 40}-{number:06}"
    allocatable = {"cpu": "15890m", "memory": "58Gi", "ephemeral-storage": "47093746742"}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "n1-standard-16",
        "topology.kubernetes.io/region": "europe-west4",
        "topology.kubernetes.io/zone": f"europe-west4-{'abc'[number % 3]}",
        "pool": f"pool-{number % 40}",
        "example.com/capacity": "spot" if number % 4 == 0 else "reserved",
        **{f"cloud.example.com/feature-{at}": f"value-{at}" for at in range(22)},
    }
    return an_object(
        "v1",
        "Node",
        {
            "name": name,
            "labels": labels,
            "annotations": {f"cloud.example.com/note-{at}": "x" * 80 for at in range(10)},
        },
        {
            "providerID": f"example://research/europe-west4/{name}",
            "taints": [{"key": "example.com/capacity", "value": "spot", "effect": "NoSchedule"}]
            if number % 4 == 0
            else [],
        },
        status={
            "capacity": {**allocatable, "pods": "110"},
            "allocatable": {**allocatable, "pods": "110"},
            "images": [
                {
                    "names": [f"registry.example.com/team-{at}/image-{at}@sha256:{at:064x}"],
                    "sizeBytes": 1_000_000 + at,
                }
                for at in range(40)
            ],
        },
    )
