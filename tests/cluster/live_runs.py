"""A run in a namespace of a test's own: what it is made of now, and what becomes of its pods.

kwok's pods run for ever, so how their programs end is written into their status here, as a kubelet
would write it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.cluster.spaces import LOOK, Json, Space
from tests.eventually import BUDGET, eventually
from tests.objects import an_object
from webhook import names
from webhook.sandbox.fairlead import SandboxController

CONTAINER: Json = {"name": "main", "image": "example.invalid/none"}
TEMPLATE: Json = {"spec": {"containers": [CONTAINER]}}
# Options of controllers that tests start.
ALONE = ("--no-leader-election",)
# The first restart after a failure waits 10 s by default, and its charge up to 90.
SOON = ("--restart-backoff-first", "0.5", "--incident-window", "0")


class StartInSpace(Protocol):
    """What the fixture `start_in_space` gives."""

    def __call__(self, name: str, *options: str) -> SandboxController:
        """Start a controller of this name for the space alone. Restarts do not wait for long."""


def run_manifest(name: str, **spec: Any) -> Json:
    """A Run; without a template its pods have one container."""
    return an_object(names.API_VERSION, names.RUN_KIND, name, {"template": TEMPLATE, **spec})


@dataclass(frozen=True)
class LiveRun:
    """One run that was created."""

    space: Space
    name: str

    @property
    def container(self) -> str:
        """The name of the main container of its pods."""
        return "main"

    def run(self) -> Json:
        """The Run as the API server has it."""
        return self.space.get(names.RUNS, self.name)

    @property
    def status(self) -> Json:
        """Its status; empty before the controller has written one."""
        status: Json = self.run().get("status", {})
        return status

    def role(self, role: str) -> Json:
        counts: Json = self.status["replicas"][role]
        return counts

    def condition(self, kind: str) -> Json:
        """One condition of the run; empty if it is not there."""
        conditions = self.status.get("conditions", ())
        return next((one for one in conditions if one["type"] == kind), {})

    def pods(self) -> dict[str, Json]:
        """Its pods by what comes after the run's name: worker-2."""
        listed = self.space.items("pods", f"{names.RUN}={self.name}")
        return {each["metadata"]["name"].removeprefix(f"{self.name}-"): each for each in listed}

    def live(self) -> dict[str, Json]:
        """Those of its pods that run or wait to, and are not being deleted."""
        return {
            name: each
            for name, each in self.pods().items()
            if each["status"]["phase"] in ("Pending", "Running")
            and "deletionTimestamp" not in each["metadata"]
        }

    def until(self, what: str, holds: Callable[[], object], *, budget: float = BUDGET) -> None:
        """Wait until it holds. Fails with the run's status and pods if it never does."""

        def explain() -> str:
            pods = {
                name: (each["status"].get("phase"), each["metadata"].get("deletionTimestamp"))
                for name, each in self.pods().items()
            }
            return f"{json.dumps(self.status, indent=1)}\n{pods}"

        eventually(what, holds, explain=explain, budget=budget, period=LOOK)

    def until_phase(self, *phases: str) -> Json:
        """Wait until the run is in one of these phases; its status then."""
        self.until(f"phase {phases}", lambda: self.status.get("phase") in phases)
        return self.status

    def until_running(self, *replicas: str) -> dict[str, Json]:
        """Wait until just these pods live, and run; they come back."""
        wanted = set(replicas)

        def there() -> bool:
            live = self.live()
            return set(live) == wanted and all(
                each["status"]["phase"] == "Running" for each in live.values()
            )

        self.until(f"{sorted(wanted)} run", there)
        return self.live()

    def until_whole(self, count: int) -> None:
        """Wait until the run is Running with so many replicas, each of them there once."""

        def whole() -> bool:
            status = self.status
            return (
                status.get("phase") == "Running"
                and status.get("replicasReady") == f"{count}/{count}"
                and len(self.live()) == count
            )

        self.until(f"{count} replicas run", whole)
        replicas = [
            (labels[names.ROLE], labels[names.REPLICA_INDEX])
            for each in self.pods().values()
            for labels in [each["metadata"]["labels"]]
        ]
        assert len(replicas) == len(set(replicas)) == count

    def until_replaced(self, replica: str, pod: Json, *, budget: float = BUDGET) -> Json:
        """Wait until another pod runs under this one's name; it comes back."""

        def there() -> bool:
            seen = self.pods().get(replica)
            return (
                seen is not None
                and seen["metadata"]["uid"] != pod["metadata"]["uid"]
                and seen["status"]["phase"] == "Running"
            )

        self.until(f"{replica} is replaced", there, budget=budget)
        return self.pods()[replica]

    def ends(
        self, replica: str, code: int, reason: str = "", message: str = "", **status: Any
    ) -> None:
        """The replica's program ends with this code."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        word = reason or ("Error" if code else "Completed")
        ended = {"exitCode": code, "reason": word, "message": message, "finishedAt": now}
        container = {
            "name": self.container,
            "image": CONTAINER["image"],
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        phase = "Failed" if code else "Succeeded"
        self.patch_status(replica, {"phase": phase, "containerStatuses": [container], **status})

    def patch_status(self, replica: str, status: Mapping[str, Any]) -> None:
        """Merge this into the pod's status, as its kubelet would."""
        self.space.patch("pods", f"{self.name}-{replica}/status", {"status": dict(status)})

    def set(self, **spec: Any) -> None:
        """Change the run's spec."""
        self.space.patch(names.RUNS, self.name, {"spec": spec})

    def until_gone(self) -> None:
        """Wait until the Run is deleted, and all that was made for it."""
        gone = "the Run is gone"
        eventually(gone, lambda: not self.space.find(names.RUNS, self.name), period=LOOK)
        mine = f"{names.RUN}={self.name}"
        owned = ("pods", "services", "configmaps", "secrets", "deployments")

        def left() -> list[str]:
            return [kind for kind in owned if self.space.items(kind, mine)]

        eventually("nothing is left of it", lambda: not left(), explain=left, period=LOOK)

    def events(self) -> list[Json]:
        """The Events of the Run itself, in no order."""
        return [
            each
            for each in self.space.items("events")
            if each["involvedObject"]["kind"] == names.RUN_KIND
            and each["involvedObject"]["name"] == self.name
        ]


def create_run(space: Space, name: str, **spec: Any) -> LiveRun:
    space.create(run_manifest(name, **spec))
    return LiveRun(space, name)
