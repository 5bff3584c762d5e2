"""`python -m tests.bench.mass_outage CHECKOUT`: a fifth of all nodes are silent, and come back.

The controllers of this checkout and of another lead in turns, beside one API server with the same
nodes, Runs and pods; each takes its own Lease. A turn is what the event loop does between two looks
at its connections, and everything waits for it, such as the renewal of the Lease. Prints Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tests.bench import gangs
from tests.bench.arena import AGENT, to_api_server
from tests.bench.client import ask_all, patch, post
from tests.bench.document import circumstances
from tests.bench.kubelet import running, say_to_all
from tests.bench.policy_memory import node
from tests.bench.process import highest_mib
from tests.bench.reviews import NAMESPACE
from tests.bench.runs_arena import until
from tests.bench.spread import ratio, spread
from tests.objects import an_object
from webhook import names
from webhook.progress import Lines
from webhook.sandbox.api import definitions, is_ready
from webhook.sandbox.binaries import obtain_binaries
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.processes import Process, free_ports
from webhook.sandbox.rights import account
from webhook.times import elapsed

HERE: Final = Path(__file__).parents[2]
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{names.CONTROLLER}"
_CLASSES: Final = f"/apis/{names.API_VERSION}/{names.CAPACITY_CLASSES}"
# One in so many nodes is silent. More than that of a class would be no loss of nodes.
_SILENT: Final = 5
_LONG: Final = 0.05
# Runs a command of Fairlead, and writes each second: when, the longest turn of its event loop by
# the wall clock and by the processor's, how many took the processor for more than 50 ms, and the
# number of turns. Other programs of the machine change the first of them only.
_TURNS: Final = """
import json, selectors, sys, threading, time
out = open(sys.argv.pop(1), "w", buffering=1)
clock = time.pthread_getcpuclockid(threading.main_thread().ident)
turns, begun = [], []
def now():
    return time.monotonic(), time.clock_gettime(clock)
def since(before):
    return tuple(b - a for a, b in zip(before, now()))
class Timed(selectors.DefaultSelector):
    def select(self, timeout=None):
        while begun:
            turns.append(since(begun.pop()))
        found = super().select(timeout)
        begun.append(now())
        return found
def write():
    while True:
        time.sleep(1)
        # The turn that has not ended, too.
        some, turns[:] = [*turns, *map(since, begun[:])], ()
        wall, used = (max((each[at] for each in some), default=0.0) for at in (0, 1))
        long = sum(each[1] > 0.05 for each in some)
        out.write(json.dumps([time.monotonic(), wall, used, long, len(some)]) + chr(10))
selectors.DefaultSelector = Timed
threading.Thread(target=write, daemon=True).start()
from webhook.cli import main
main()
"""


class Found(NamedTuple):
    """What one controller did, in seconds: of a processor in `first_list` and `turn`."""

    first_list: float
    turn: float
    wall: float
    long: float
    pause: float
    scrape: float
    memory: float


_ROWS: Final = {
    "first_list": ("longest turn of the first lists, ms of a processor", 1000.0),
    "turn": ("longest turn of the outage, ms of a processor", 1000.0),
    "wall": ("longest turn of the outage, ms", 1000.0),
    "long": ("turns of the outage of more than 50 ms of a processor", 1.0),
    "pause": ("longest time without a renewal of the Lease, s; it is lost after 10", 1.0),
    "scrape": ("slowest scrape of the metrics, ms", 1000.0),
    "memory": ("highest memory, MiB", 1.0),
}


class Controller:
    """A controller of a checkout, with its turns."""

    def __init__(self, plane: ControlPlane, checkout: Path) -> None:
        self._plane = plane
        name = self.name = f"controller-{time.time_ns()}"
        self.turns = plane.layout.directory / f"{name}.turns"
        self.port = free_ports(["health"])["health"]
        # Else it would wait until that of the controller before is over.
        plane.api.delete(_LEASE)
        self.process: Process = plane.start_process(
            name,
            [
                *(sys.executable, "-c", _TURNS, self.turns, "controller"),
                *("--kubeconfig", account(plane, names.CONTROLLER)),
                *("--host", "127.0.0.1", "--health-port", str(self.port)),
                *("--qps", "300", "--burst", "600"),
            ],
            {"PYTHONPATH": str(checkout)},
        )

    def wait(self) -> None:
        """Return once it leads, and has nothing left to do."""
        until("the controller to be ready", lambda: is_ready(self.port))
        until("the controller to lead", lambda: self.value("fairlead_leader") == 1)
        until("the queue to be empty", lambda: self.value("fairlead_queue_depth") == 0)
        time.sleep(5)

    def listens(self) -> bool:
        """Whether its caches may begin to be filled."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def value(self, metric: str) -> float:
        """A metric without labels."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(each.split()[1]) for each in lines if each.startswith(f"{metric} "))

    def longest_pause(self, ended: threading.Event) -> float:
        """The longest time without a renewal of its Lease, until the end, to 0.2 s."""
        longest = 0.0
        while not ended.wait(0.2):
            renewed = self._plane.api.get(_LEASE)["spec"]["renewTime"]
            longest = max(longest, elapsed(renewed, datetime.now(UTC)))
        return longest

    def turns_between(self, began: float, ended: float) -> list[list[float]]:
        """What was written of the turns of these seconds."""
        found = map(json.loads, self.turns.read_text().splitlines())
        return [each for each in found if began < each[0] <= ended + 1]

    def stop(self) -> None:
        self._plane.stop_component(self.process.name)


def set_up(plane: ControlPlane, nodes: int, runs: int, replicas: int) -> None:
    """Nodes that are ready, Runs whose pods are on them, and two classes."""
    for name, of in (("spot", "spot"), ("reserved", "reserved")):
        spec = {
            "nodes": [{"labels": {"example.com/capacity": of}}],
            "lostAfter": "10m",
            "unhealthy": [{"condition": "GpuHealthy", "status": "False", "lasts": "5m"}],
        }
        metadata = {"name": name}
        made = an_object(names.API_VERSION, names.CLASS_KIND, metadata, spec)
        plane.api.create(_CLASSES, made)
    connect = partial(to_api_server, plane)
    machines = [node(number) for number in range(nodes)]
    for each in machines:
        each["status"]["conditions"] = [condition("True")]
    posts = [post("/api/v1/nodes", orjson.dumps(each), AGENT) for each in machines]
    ask_all(connect, posts, wanted=201)
    controller = Controller(plane, HERE)
    controller.wait()
    manifests = [gangs.run(f"run-{number}", {"worker": replicas}, "all") for number in range(runs)]
    for each in manifests:
        each["spec"]["framework"] = "jax"
    path = gangs.collection(gangs.RUN)
    posts = [post(path, orjson.dumps(each), AGENT) for each in manifests]
    ask_all(connect, posts, wanted=201)
    pods = [f"run-{run}-worker-{index}" for run in range(runs) for index in range(replicas)]
    until("the pods", lambda: controller.value("fairlead_pods_created_total") == len(pods), 3600)
    bindings = []
    for at, pod in enumerate(pods):
        target = {"kind": "Node", "name": machines[at * 7 % nodes]["metadata"]["name"]}
        binding = {"metadata": {"name": pod}, "target": target}
        bindings.append(post(f"{_PODS}/{pod}/binding", orjson.dumps(binding), AGENT))
    ask_all(connect, bindings, wanted=201)
    say_to_all(connect, pods, running())
    controller.wait()
    controller.stop()


def condition(status: str) -> dict[str, str]:
    """The Ready condition; Unknown is what the node controller says of a silent kubelet."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": "Ready", "status": status, "lastTransitionTime": now, "reason": "Bench"}


def say_of_nodes(plane: ControlPlane, some: Sequence[str], status: str) -> None:
    """Write the Ready condition of these nodes, as fast as the API server takes it."""
    body = orjson.dumps({"status": {"conditions": [condition(status)]}})
    requests = [patch(f"/api/v1/nodes/{name}/status", body, AGENT) for name in some]
    ask_all(partial(to_api_server, plane), requests)


def outage(plane: ControlPlane, checkout: Path, nodes: int, hold: float) -> Found:
    """Lead, lose a fifth of the nodes, and get them back; the same with each controller."""
    controller = Controller(plane, checkout)
    until("the controller to listen", controller.listens)
    # The seconds of its start are not those of its lists.
    time.sleep(1.5)
    began = time.monotonic()
    controller.wait()
    ready = time.monotonic()
    silent = [node(number)["metadata"]["name"] for number in range(0, nodes, _SILENT)]
    scrapes, over = [], threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pause = pool.submit(controller.longest_pause, over)
        for status in ("Unknown", "True"):
            say_of_nodes(plane, silent, status)
            until_then = time.monotonic() + hold
            while time.monotonic() < until_then:
                asked = time.monotonic()
                with contextlib.suppress(OSError):
                    controller.value("fairlead_leader")
                scrapes.append(time.monotonic() - asked)
                time.sleep(2)
        ended = time.monotonic()
        time.sleep(3)
        over.set()
    first, of_outage = (
        controller.turns_between(began, ready),
        controller.turns_between(ready, ended),
    )
    memory = highest_mib(controller.process.pid)
    controller.stop()
    found = Found(
        max(each[2] for each in first),
        max(each[2] for each in of_outage),
        max(each[1] for each in of_outage),
        sum(each[3] for each in of_outage),
        pause.result(),
        max(scrapes),
        memory,
    )
    print(f"{checkout.name}: {found}", file=sys.stderr, flush=True)
    return found


@contextlib.contextmanager
def arena() -> Iterator[ControlPlane]:
    """An API server alone: nothing else reacts to nodes that are silent."""
    # Ten thousand nodes of 10 KB would keep the API server busy with its garbage.
    os.environ["GOMEMLIMIT"] = "4GiB"
    components = ("etcd", "kube-apiserver")
    binaries = obtain_binaries(components, Lines(sys.stderr))
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(components=components, definitions=definitions())
        with ControlPlane(Path(directory) / "state", binaries, settings) as plane:
            plane.create_namespace(NAMESPACE)
            yield plane


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, nargs="?", help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--hold", type=float, default=30, help="seconds of silence, and after it")
    options = parser.parse_args()
    arms = {"this": HERE} | ({"other": options.checkout} if options.checkout else {})
    rounds: list[dict[str, Found]] = []
    with arena() as plane:
        set_up(plane, options.nodes, options.runs, options.replicas)
        for _ in range(options.rounds):
            order = random.sample(sorted(arms), len(arms))
            rounds.append(
                {arm: outage(plane, arms[arm], options.nodes, options.hold) for arm in order}
            )
    print(circumstances(options.rounds), "\n", sep="")
    print(table(rounds, sorted(arms)))


def table(rounds: Sequence[dict[str, Found]], arms: Sequence[str]) -> str:
    """A line for each figure, with the ratio to the other checkout's."""
    lines = [f"| | {' | '.join(reversed(arms))} | ratio |", "|---|" + "---|" * (len(arms) + 1)]
    for field, (title, factor) in _ROWS.items():
        by_arm = {
            arm: [getattr(each[arm], field) * factor for each in rounds] for arm in reversed(arms)
        }
        cells = [spread(figures).text(0) for figures in by_arm.values()]
        of_all: Any = by_arm.get("other", [0])
        cells.append(ratio(by_arm["this"], of_all).text(3) if all(of_all) else "–")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
