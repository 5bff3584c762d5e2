"""What a test has at hand: a namespace of its own, and the webhook that serves there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.server.serving import get, readiness
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.webhook import Webhook

Json = dict[str, Any]
# Whom the sandbox's kubeconfig speaks for: the tests, and the controllers that they start.
ADMINISTRATOR = "fairlead-admin"
NewNamespace = Callable[[Mapping[str, str]], "Room"]


@dataclass(frozen=True)
class Running:
    """A webhook that serves, and the folder of its policies."""

    webhook: Webhook
    policies: Path

    @property
    def _health_port(self) -> int:
        return int(self.webhook.health_url.rpartition(":")[2])

    def metrics(self) -> bytes:
        """All that it tells of itself, in Prometheus' format."""
        return get(self._health_port, "/metrics")[1]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        return metric(self._health_port, name, **labels)

    def readiness(self) -> Json:
        """The conditions, whether all of them are ready or not."""
        conditions: Json = readiness(self._health_port)[1]["conditions"]
        return conditions


@dataclass(frozen=True)
class Room:
    """A namespace of a test's own, and kubectl within it."""

    plane: ControlPlane
    kubectl: Kubectl
    name: str

    def create(self, manifest: Json, *options: str) -> Json:
        """`kubectl create` the object; it comes back as the API server has stored it."""
        created: Json = self.kubectl.json("create", "-f", "-", *options, stdin=json.dumps(manifest))
        return created

    def pods(self) -> list[Json]:
        """The pods in the namespace."""
        items: list[Json] = self.kubectl.json("get", "pods")["items"]
        return items

    def wait_for_pods(self, count: int) -> list[Json]:
        """Wait until there are so many pods, all of them bound to nodes, and return them."""
        while True:
            found = self.pods()
            if len(found) == count and all("nodeName" in seen["spec"] for seen in found):
                return found

    def audited(self, pod: str) -> list[Json]:
        """What the API server's audit log holds of creations of this pod: the annotations."""
        events = [
            event
            for event in self.plane.audit_events(self.name)
            if event["verb"] == "create" and event["objectRef"].get("name") == pod
        ]
        return [event.get("annotations", {}) for event in events]


def metric(health_port: int, name: str, **labels: str) -> float:
    """The sum of the samples of this name that have these labels, at a process's plain port."""
    lines = get(health_port, "/metrics")[1].decode().splitlines()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith((f"{name} ", f"{name}{{")) and all(one in line for one in wanted)
    )


def stamp(pod: Json) -> Json:
    """What Fairlead has written on the pod."""
    text: str = pod["metadata"]["annotations"][names.PLACEMENT]
    stamped: Json = json.loads(text)
    return stamped


def is_stamped(pod: Json) -> bool:
    """Whether Fairlead has written anything on the pod."""
    return names.PLACEMENT in pod["metadata"].get("annotations", {})
