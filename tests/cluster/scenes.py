"""A run in a namespace of a test's own: what it is made of now, and what becomes of its pods.

kwok's pods run for ever, so how their programs end is written into their status here, as a kubelet
would write it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cluster.rooms import Json, Room
from webhook import names

CONTAINER: Json = {"name": "main", "image": "example.invalid/none"}
TEMPLATE: Json = {"spec": {"containers": [CONTAINER]}}
# Seconds; far above what anything takes, backoffs of 10 s included.
PATIENCE = 120.0


def run_manifest(name: str, **spec: Any) -> Json:
    """A Run; without a template its pods have one container."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {"name": name},
        "spec": {"template": TEMPLATE, **spec},
    }


@dataclass(frozen=True)
class Scene:
    """One run that was created."""

    room: Room
    name: str

    def run(self) -> Json:
        """The Run as the API server has it."""
        seen: Json = self.room.kubectl.json("get", "run", self.name)
        return seen

    @property
    def status(self) -> Json:
        """Its status; empty before the controller has written one."""
        status: Json = self.run().get("status", {})
        return status

    def role(self, role: str) -> Json:
        """The counts of one role."""
        counts: Json = self.status["replicas"][role]
        return counts

    def condition(self, kind: str) -> Json:
        """One condition of the run; empty if it is not there."""
        conditions = self.status.get("conditions", ())
        return next((one for one in conditions if one["type"] == kind), {})

    def pods(self) -> dict[str, Json]:
        """Its pods by what comes after the run's name: worker-2."""
        listed = self.room.kubectl.json("get", "pods", "-l", f"{names.RUN}={self.name}")["items"]
        return {each["metadata"]["name"].removeprefix(f"{self.name}-"): each for each in listed}

    def live(self) -> dict[str, Json]:
        """Those of its pods that run or wait to, and are not being deleted."""
        return {
            name: each
            for name, each in self.pods().items()
            if each["status"]["phase"] in ("Pending", "Running")
            and "deletionTimestamp" not in each["metadata"]
        }

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait until it holds. Fails with the run's status and pods if it never does."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                pods = {
                    name: (each["status"].get("phase"), each["metadata"].get("deletionTimestamp"))
                    for name, each in self.pods().items()
                }
                raise AssertionError(f"never: {what}\n{json.dumps(self.status, indent=1)}\n{pods}")
            time.sleep(0.1)

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

    def until_replaced(self, replica: str, pod: Json) -> Json:
        """Wait until another pod runs under this one's name; it comes back."""

        def there() -> bool:
            seen = self.pods().get(replica)
            return (
                seen is not None
                and seen["metadata"]["uid"] != pod["metadata"]["uid"]
                and seen["status"]["phase"] == "Running"
            )

        self.until(f"{replica} is replaced", there)
        return self.pods()[replica]

    def ends(
        self, replica: str, code: int, reason: str = "", message: str = "", **status: Any
    ) -> None:
        """The replica's program ends with this code."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        word = reason or ("Error" if code else "Completed")
        ended = {"exitCode": code, "reason": word, "message": message, "finishedAt": now}
        container = {
            "name": "main",
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
        self.room.kubectl(
            *("patch", "pod", f"{self.name}-{replica}", "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )

    def set(self, **spec: Any) -> None:
        """Change the run's spec."""
        patch = json.dumps({"spec": spec})
        self.room.kubectl("patch", "run", self.name, "--type=merge", "-p", patch)

    def events(self) -> list[Json]:
        """The Events of the Run itself, in no order."""
        listed = self.room.kubectl.json("get", "events")["items"]
        found: list[Json] = [
            each for each in listed if each["involvedObject"]["kind"] == names.RUN_KIND
        ]
        return [each for each in found if each["involvedObject"]["name"] == self.name]


def play(room: Room, name: str, **spec: Any) -> Scene:
    """Create a run in the room."""
    room.create(run_manifest(name, **spec))
    return Scene(room, name)
