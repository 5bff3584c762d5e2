"""Runs come to be while controllers are killed, the API server restarts, and history is lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.births import Births
from tests.chaos.stage import Scenario, Stage, Tally
from tests.cluster import etcd
from tests.cluster.live_runs import run_manifest
from tests.cluster.spaces import metric
from tests.eventually import eventually
from webhook import names
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import NoAnswer, install_definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

RUNS: Final = "runs"
REPLICAS: Final = "replicas"
MISSING: Final = "replicas missing"
TWICE: Final = "replicas created twice"
KILLED: Final = "leaders killed"
RESTARTED: Final = "API servers restarted"
COMPACTED: Final = "histories compacted"

NAMESPACE: Final = "lab"
WORKERS: Final = 39
CONTROLLERS: Final = ("one", "two")
# Short, so that a new leader need not be waited for.
_ELECTION: Final = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.3")


@dataclass
class House:
    """A control plane with nodes, and two controllers of which one leads."""

    plane: ControlPlane
    births: Births
    controllers: dict[str, SandboxController] = field(default_factory=dict)

    def start(self, name: str, python: str | Path = sys.executable) -> None:
        """Start a controller of the version that is installed for `python`."""
        options = ("--namespace", NAMESPACE, *_ELECTION)
        self.controllers[name] = start_controller(
            self.plane, name=name, options=options, python=python
        )

    def kill_leader(self) -> None:
        """Kill whoever leads; another one takes its place in the queue."""
        [leader] = self._until("one leads", lambda: self._leaders() or None)[:1]
        self.plane.stop_component(leader)
        self.start(leader)

    def restart_api_server(self) -> None:
        """Kill it and start it again."""
        self.plane.stop_component("kube-apiserver")
        self.plane.start_component("kube-apiserver")
        self.plane.wait_for_api_server()

    def lose_history(self) -> None:
        """While controllers stand still their watches' history is forgotten."""
        for each in self.controllers.values():
            os.kill(each.pid, signal.SIGSTOP)
        # So that there is something to miss.
        time.sleep(1)
        etcd.compact(self.plane)
        # Whose cache still knows what etcd has forgotten.
        self.restart_api_server()
        for each in self.controllers.values():
            os.kill(each.pid, signal.SIGCONT)

    def create(self, name: str) -> None:
        """A run of one master and its workers."""
        replicas = {"master": {}, "worker": {"count": WORKERS}}
        manifest = run_manifest(name, framework="pytorch", replicas=replicas)
        self.plane.api.create(self._runs(), manifest)

    def wait_begun(self, name: str, count: int) -> None:
        """Wait until so many of its pods were created."""
        self._until(
            f"{name} has begun",
            lambda: len(self.births.of(f"{name}-")) >= count or None,
            lambda: self._explain(name),
        )

    def wait_whole(self, name: str) -> None:
        """Wait until the run says that all of its replicas run."""
        wanted = f"{WORKERS + 1}/{WORKERS + 1}"

        def whole() -> bool | None:
            run = self.plane.api.get(self._runs(name)) or {}
            return run.get("status", {}).get("replicasReady") == wanted or None

        self._until(f"{name} is whole", whole, lambda: self._explain(name))

    def _explain(self, name: str) -> str:
        """The run, and the end of each controller's log."""
        logs = [
            f"{controller.name}: {controller.process.log_tail()}"
            for controller in self.controllers.values()
        ]
        return "\n".join([str(self.plane.api.get(self._runs(name))), *logs])

    def pods(self, name: str) -> list[dict[str, Any]]:
        """The run's pods that are there."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={names.RUN}={name}"
        items: list[dict[str, Any]] = self.plane.api.get(path)["items"]
        return items

    def delete(self, name: str) -> None:
        """Delete the run; its pods go with it some time."""
        self.plane.api.call("DELETE", self._runs(name))

    def _leaders(self) -> list[str]:
        ports = {name: each.health_port for name, each in self.controllers.items()}
        return [name for name, port in ports.items() if metric(port, "fairlead_leader") == 1]

    def _runs(self, name: str = "") -> str:
        path = f"/apis/{names.API_VERSION}/namespaces/{NAMESPACE}/{names.RUNS}"
        return f"{path}/{name}" if name else path

    def _until(
        self, what: str, found: Callable[[], Any], explain: Callable[[], object] = str
    ) -> Any:
        def so() -> Any:
            # The API server, or a controller, may be on its way up.
            with suppress(NoAnswer, OSError):
                return found()

        return eventually(what, so, budget=180, period=0.05, explain=explain)


def play(stage: Stage) -> Tally:
    """Something happens in the middle of each run; in the end each replica was created once."""
    tally = Tally()
    settings = Settings(pools=read_pools(SHIPPED_NODES), extra_arguments=etcd.KEEP_HISTORY)
    with ControlPlane(stage.directory / "state", stage.binaries, settings) as plane:
        install_definitions(plane.api, [custom_resource_definition()])
        plane.create_namespace(NAMESPACE)
        with Births(plane, NAMESPACE) as births:
            house = House(plane, births)
            for name in CONTROLLERS:
                house.start(name)
            for number in range(stage.rounds):
                _round(house, stage, number, tally)
                stage.say(f"run {number + 1} of {stage.rounds}")
    return tally


def _round(house: House, stage: Stage, number: int, tally: Tally) -> None:
    name = f"run-{number}"
    house.create(name)
    house.wait_begun(name, stage.chance.randrange(0, WORKERS))
    what, happens = (
        (KILLED, house.kill_leader),
        (RESTARTED, house.restart_api_server),
        (KILLED, house.kill_leader),
        (COMPACTED, house.lose_history),
    )[number % 4]
    happens()
    tally.count(what)
    house.wait_whole(name)
    tally.count(RUNS)
    count_replicas(house, name, tally)
    house.delete(name)


def count_replicas(house: House, name: str, tally: Tally) -> None:
    """Count the run's replicas, and which of them are missing or were created twice."""
    created = Counter(house.births.of(f"{name}-"))
    there = {each["metadata"]["name"] for each in house.pods(name)}
    wanted = {f"{name}-master-0", *(f"{name}-worker-{index}" for index in range(WORKERS))}
    tally.count(REPLICAS, len(wanted))
    tally.count(MISSING, len(wanted - there))
    tally.count(TWICE, created.total() - len(wanted))


SCENARIO: Final = Scenario(
    name="runs",
    does="runs, while leaders are killed, API servers restart, and history is compacted",
    unit=RUNS,
    long=(20,) * 10,
    short=4,
    play=play,
    none=(MISSING, TWICE),
)
