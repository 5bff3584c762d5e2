"""Gangs on nodes that have room for one of them, beside Jobs that come and go.

Programs of Runs end by this: kwok's pods run for ever. Nothing here depends on what is played but
the number of gangs, so that tests and the benchmark play the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.cluster.live_runs import run_manifest
from tests.cluster.spaces import Json, Space
from webhook import names
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.simulated_nodes import Pool
from webhook.times import elapsed, parse_time

GPU = "nvidia.com/gpu"
LOOK = 0.5
# Seconds for which the programs of a whole gang, and Jobs, run.
WORK = 3.0
# So many looks that a read of Runs and pods of other moments is told from a fault.
LAG = 10.0


def settings(nodes: int) -> Settings:
    """A control plane with so many nodes of one GPU."""
    from webhook.sandbox.api import definitions

    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "1"}
    pools = [Pool(name="gpu", count=nodes, capacity=capacity)]
    return Settings(pools=pools, definitions=definitions())


@dataclass
class Play:
    """What was seen. ended: by name, the seconds until it succeeded. held: GPU-seconds of runs that
    are not whole. longest: for how long a run that is not whole held a GPU at a time."""

    space: Space
    size: int
    gang: bool = True
    within: str = "1m"
    environment: Json = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    held: float = 0.0
    longest: float = 0.0
    tries: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    _holding: dict[str, float] = field(default_factory=dict)
    _whole: dict[str, float] = field(default_factory=dict)

    def create(self, number: int) -> None:
        """One more Run."""
        spec: Json = {"framework": "jax", "replicas": {"worker": {"count": self.size}}}
        spec["replicas"]["worker"]["resources"] = {"limits": {GPU: "1"}}
        if self.environment:
            spec["environment"] = self.environment
        if self.gang:
            spec["gang"] = {"startWithin": self.within}
        run = run_manifest(f"run-{number}", cleanPodPolicy="All", **spec)
        run["metadata"]["labels"] = self.labels
        self.space.create(run)

    def job(self, number: int) -> None:
        """A plain Job's pod that holds a GPU for a while: it is deleted then."""
        container: Json = {"name": "main", "image": "example.invalid/none"}
        container["resources"] = {"limits": {GPU: "1"}}
        template: Json = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"job-{number}"}}
        self.space.create({**job, "spec": {"template": template}})

    def until(self, holds: Callable[[], bool], budget: float) -> bool:
        """Look again and again; return whether it held in time."""
        end = time.monotonic() + budget
        last = time.monotonic()
        while time.monotonic() < end:
            now = time.monotonic()
            self._look(now, now - last)
            if holds():
                return True
            last = now
            time.sleep(LOOK)
        return False

    def _look(self, now: float, passed: float) -> None:
        pods: dict[str, list[Json]] = defaultdict(list)
        for pod in self.space.items("pods"):
            labels = pod["metadata"].get("labels", {})
            if run := labels.get(names.RUN):
                pods[run].append(pod)
            elif running_for(pod) > WORK:
                self.space.delete("jobs.batch", labels["batch.kubernetes.io/job-name"])
        for run in self.space.items(names.RUNS):
            name = run["metadata"]["name"]
            if run.get("status", {}).get("phase") == "Succeeded":
                since = run["metadata"]["creationTimestamp"]
                self.ended.setdefault(
                    name, elapsed(since, parse_time(run["status"]["completionTime"]))
                )
                continue
            self._hold(name, pods[name], now, passed)

    def _hold(self, name: str, pods: list[Json], now: float, passed: float) -> None:
        """Note what one run holds. The programs of one that is whole end after a while."""
        indexes = [pod["metadata"]["labels"][names.REPLICA_INDEX] for pod in pods]
        assert len(indexes) == len(set(indexes)), f"{name}: {indexes}"
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        if len(bound) == self.size and all(running_for(pod) > 0 for pod in pods):
            self._whole.setdefault(name, now)
        if name in self._whole:
            self._holding.pop(name, None)
            if now - self._whole[name] > WORK:
                for pod in pods:
                    finish(self.space, pod)
            return
        if not bound:
            self._holding.pop(name, None)
            return
        self.held += passed * len(bound)
        since = self._holding.setdefault(name, now)
        self.longest = max(self.longest, now - since)


def running_for(pod: Json) -> float:
    """Seconds since the pod's program began; 0 for one that does not run."""
    containers: list[Json] = pod["status"].get("containerStatuses", [])
    state = containers[0].get("state", {}) if containers else {}
    if pod["status"].get("phase") != "Running" or "running" not in state:
        return 0.0
    began = parse_time(state["running"]["startedAt"])
    return max(0.001, time.time() - began.timestamp())


def finish(space: Space, pod: Json) -> None:
    """The pod's program ends well, as its kubelet would write it."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ended = {"exitCode": 0, "reason": "Completed", "finishedAt": now}
    container = {"name": "main", "image": "example.invalid/none", "imageID": "", "ready": False}
    container |= {"restartCount": 0, "state": {"terminated": ended}}
    status = {"phase": "Succeeded", "containerStatuses": [container]}
    if pod["status"].get("phase") == "Running":
        space.patch("pods", f"{pod['metadata']['name']}/status", {"status": status})


def starts(space: Space) -> Iterator[Json]:
    """The status of the start of each Run."""
    for run in space.items(names.RUNS):
        yield run.get("status", {}).get("gang") or {}
