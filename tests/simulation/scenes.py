"""A Run, policies and scenarios for the simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.objects import an_object
from webhook import names
from webhook.decision.arrival import Cluster
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.policy.load import load
from webhook.run.model import Run
from webhook.simulation.placer import Placer
from webhook.simulation.play import Ending, Play
from webhook.simulation.scenario import parse

SPOT = {"lifecycle": "spot"}
CLASS = {
    "apiVersion": names.API_VERSION,
    "kind": names.CLASS_KIND,
    "metadata": {"name": "spot"},
    "spec": {"nodes": [{"labels": SPOT}], "interruptible": True},
}


def on_spot(**setting: Any) -> dict[str, bytes]:
    """A set with one policy, about the class spot: Constrain unless the setting says so."""
    capacity = [{"class": "spot", "mode": "Constrain", **setting}]
    return policies({"capacity": capacity})


def policies(overrides: dict[str, Any]) -> dict[str, bytes]:
    policy = an_object(names.API_VERSION, names.POLICY_KIND, "a", {"overrides": overrides})
    return {"a.yaml": "\n---\n".join(map(json.dumps, (CLASS, policy))).encode()}


def scenario(pools: Sequence[dict[str, Any]], **spec: Any) -> bytes:
    document = {
        "apiVersion": names.API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": "test"},
        "spec": {"pools": pools, "program": {"work": "10h", "checkpoint": "30m"}, **spec},
    }
    return json.dumps(document).encode()


def run_of(**spec: Any) -> Run:
    """A run of four workers, unless the spec says otherwise."""
    return Run.model_validate(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RUN_KIND,
            "metadata": {"name": "mnist", "namespace": "lab"},
            "spec": {
                "framework": "jax",
                "replicas": {"worker": {"count": 4}},
                "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}},
                "restartScope": "Run",
                **spec,
            },
        }
    )


def played(
    files: dict[str, bytes], text: bytes, *, repeat: int = 1, seed: int = 1, run: Run | None = None
) -> list[Ending]:
    """The repetitions of a scenario."""
    runs = [run or run_of()]
    return [
        played_together(files, text, runs, seed=seed, repetition=each)[0] for each in range(repeat)
    ]


def played_together(
    files: dict[str, bytes], text: bytes, runs: Sequence[Run], *, seed: int = 1, repetition: int = 0
) -> list[Ending]:
    """One repetition with some runs that share the nodes."""
    (found,) = parse("scenario.yaml", text)
    now = datetime.now(UTC)
    world = World(load(files).policies, Cluster(""), {}, now, None, None, UNREAD, None, None, None)
    placers = [Placer(world, run, found.spec.pools, number) for number, run in enumerate(runs)]
    return Play(placers, found.spec, seed=seed, repetition=repetition).endings()


def told(ending: Ending) -> list[tuple[int, str]]:
    """What happened, without what the controller announces beside it."""
    return [(round(each.at), each.what) for each in ending.happenings if ": " not in each.what]
