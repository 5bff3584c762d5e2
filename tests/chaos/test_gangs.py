"""Gangs that compete for nodes, while Jobs take some and the controller is killed."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.gangs import LAG, Play, settings, starts
from tests.cluster.live_runs import ALONE
from tests.cluster.spaces import Space
from tests.control_planes import StartControlPlane
from webhook import names
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

GANGS, SIZE, NODES, JOBS = 6, 4, 5, 4
WITHIN = 60.0


@pytest.fixture(scope="module")
def space(start_module_plane: StartControlPlane, kubectl_path: Path) -> Space:
    """A namespace of a control plane with few GPUs, without a controller."""
    plane = start_module_plane(settings(NODES))
    plane.create_namespace("lab")
    return Space(plane, Kubectl(kubectl_path, plane.kubeconfig).within("lab"), "lab")


def more_ended(play: Play, than: int) -> bool:
    return len(play.ended) > than


@pytest.mark.timeout(900)
def test_every_gang_that_fits_becomes_whole_and_holds_nothing_for_long(space: Space) -> None:
    """No pod is there twice, and one that can never fit creates none: by its size, or by the nodes
    on which its pods may run."""
    play = Play(space, SIZE)
    impossible = Play(space, NODES + 1)
    elsewhere = Play(space, SIZE, environment={"nodeSelector": {"pool": "none"}})
    start_controller(space.plane, options=(*ALONE, "--no-policy-status"), name="first")
    impossible.create(0)
    elsewhere.create(99)
    for number in range(1, GANGS + 1):
        play.create(number)
        if number <= JOBS:
            play.job(number)
    for kill in range(2):
        play.until(partial(more_ended, play, kill), 120)
        space.plane.stop_component("first" if kill == 0 else f"next-{kill}")
        time.sleep(1)
        name = f"next-{kill + 1}"
        start_controller(space.plane, options=(*ALONE, "--no-policy-status"), name=name)
    done = play.until(lambda: len(play.ended) == GANGS, 600)
    told = {run["metadata"]["name"]: run.get("status", {}) for run in space.items(names.RUNS)}
    assert done, told
    assert play.longest <= WITHIN + LAG, play
    never = told["run-0"]
    assert never["phase"] == "Pending"
    assert never["gang"]["state"] == "Waiting"
    assert never["gang"]["tries"] == 0
    assert f"at most {NODES} of {NODES + 1} replicas can have a node" in never["message"]
    assert told["run-99"]["gang"]["tries"] == 0
    assert f"at most 0 of {SIZE} replicas can have a node" in told["run-99"]["message"]
    assert sum(gang["state"] == "Whole" for gang in starts(space)) == GANGS
