"""What a test has at hand: a namespace of its own, and the webhook that serves there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from click.testing import CliRunner, Result

from tests.cluster.paths import home, path
from tests.eventually import eventually
from tests.server.serving import get, readiness
from webhook import names
from webhook.cli import fairlead
from webhook.errors import SandboxError
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
# Whom the sandbox's kubeconfig speaks for: the tests, and the controllers that they start.
ADMINISTRATOR = "fairlead-admin"
# Seconds between two looks that cost the API server a list.
LOOK = 0.05
NewNamespace = Callable[[Mapping[str, str]], "Space"]


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

    def serve(self, text: str) -> PolicySet:
        """Make this its only policy file, and wait until it serves the set; return the set."""
        draft = self.policies.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(self.policies / "p.yaml")
        wanted = load({"p.yaml": text.encode()}).policies

        def reason() -> str:
            return str(self.readiness()["policies"]["reason"])

        eventually(
            f"the webhook serves the set {wanted.hash[:12]}",
            lambda: wanted.hash[:12] in reason(),
            explain=reason,
            period=LOOK,
        )
        return wanted


@dataclass(frozen=True)
class Space:
    """A namespace of a test's own, and kubectl within it."""

    plane: ControlPlane
    kubectl: Kubectl
    name: str

    def path(self, resource: str, name: str = "") -> str:
        """Where the API server has what is in this namespace: `pods`, or one of them."""
        return path(resource, name, namespace=self.name)

    def get(self, resource: str, name: str) -> Json:
        """One object. Raises SandboxError if it is not there."""
        found: Json | None = self.find(resource, name)
        if found is None:
            raise SandboxError(f"there is no {resource}/{name} in {self.name}")
        return found

    def find(self, resource: str, name: str) -> Json | None:
        """One object, or None."""
        found: Json | None = self.plane.api.get(self.path(resource, name))
        return found

    def items(self, resource: str, selector: str = "") -> list[Json]:
        """All objects of a resource, or those that a label selector finds."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        items: list[Json] = self.plane.api.get(self.path(resource) + query)["items"]
        return items

    def create(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Create the object, as strictly as kubectl does; it comes back as it is stored."""
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        created: Json = self.plane.api.create(home(manifest, self.name) + query, manifest)
        return created

    def patch(self, resource: str, name: str, body: Json) -> Json:
        """Merge this into an object, or into its status: `patch("pods", "p/status", …)`."""
        changed: Json = self.plane.api.patch(self.path(resource, name), body)
        return changed

    def delete(self, resource: str, name: str, *, now: bool = False) -> None:
        """Delete an object without waiting until it is gone; `now`: without a grace period."""
        query = "?gracePeriodSeconds=0" if now else ""
        self.plane.api.delete(self.path(resource, name) + query)

    def pods(self) -> list[Json]:
        return self.items("pods")

    def wait_for_pods(self, count: int) -> list[Json]:
        """Wait until there are so many pods, all of them bound to nodes, and return them."""

        found: list[Json] = []

        def bound() -> bool:
            found[:] = self.pods()
            return len(found) == count and all("nodeName" in seen["spec"] for seen in found)

        eventually(f"{count} pods are bound in {self.name}", bound, explain=self.pods, period=LOOK)
        return found

    def ask(self, *words: object, kubeconfig: Path | None = None) -> Result:
        """Call `fairlead` with these words, for this namespace unless they name others."""
        where = ["--kubeconfig", str(kubeconfig or self.plane.kubeconfig)]
        namespace = [] if {"-n", "-A"} & set(words) else ["-n", self.name]
        return CliRunner().invoke(fairlead, [*map(str, words), *where, *namespace])

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


def forget_applied(kubectl: Kubectl, kind: str, name: str) -> None:
    """Take away what `kubectl apply` remembers in an object that other tests apply otherwise.

    They do so on the server's side, which warns of it.
    """
    kubectl("annotate", kind, name, "kubectl.kubernetes.io/last-applied-configuration-")
