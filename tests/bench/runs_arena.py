"""One API server with the webhook switched on, and all three controllers that make pods."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson

from tests.bench import training_operator
from tests.bench.arena import AGENT, serving, to_api_server
from tests.bench.client import Connection, post
from tests.bench.gangs import LABEL, RUN, collection
from tests.bench.pod_watch import PodWatch
from tests.bench.process import cpu_ms
from tests.bench.reviews import NAMESPACE
from webhook import names
from webhook.errors import SandboxError
from webhook.installation.manifests import backends
from webhook.progress import Progress
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook, start_controller
from webhook.sandbox.operators.install import Installation

CONTROLLER: Final = "controller"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{names.CONTROLLER}"

# No scheduler and no nodes: creation is what is measured, and what comes after it would take
# processor time from it in proportion to how fast it is.
_COMPONENTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager")
_EXTRA: Final = {"kube-controller-manager": ("--kube-api-qps=300", "--kube-api-burst=600")}
# As many as one request to delete a collection gets done in time.
_AT_ONCE: Final = 250
# Milliseconds of processor time in half a second: less is rest.
_REST: Final = 40
_NAMESPACED: Final = f"/api/v1/namespaces/{NAMESPACE}"


@dataclass(frozen=True)
class RunsArena:
    """The API server, with everything set up but the training operator, which is started at need.

    `operator` is what it needs there.
    """

    plane: ControlPlane
    webhook: Webhook
    operator: Installation

    def connect(self) -> Connection:
        """A connection to the API server, as its administrator."""
        return to_api_server(self.plane)

    def settle(self, patience: float = 300) -> None:
        """Return once nobody is at work any more. Raises SandboxError if that never comes."""
        deadline = time.monotonic() + patience
        quiet = 0
        while quiet < 2:
            before = {name: cpu_ms(pid) for name, pid in self.plane.pids.items()}
            time.sleep(0.5)
            used = {name: cpu_ms(self.plane.pids[name]) - ms for name, ms in before.items()}
            quiet = quiet + 1 if max(used.values()) < _REST else 0
            if time.monotonic() > deadline:
                raise SandboxError(f"no rest after {patience} s; busy, in ms of 500: {used}")

    def restart_controller(self) -> None:
        """Kill the controller if it runs; return once a new one is ready."""
        if CONTROLLER in self.plane.pids:
            self.plane.stop_component(CONTROLLER)
        # Else it would wait until that of the killed one is over.
        self.plane.api.delete(_LEASE)
        start_controller(self.plane, name=CONTROLLER, backends=backends())

    def create_runs(self, manifests: Sequence[Mapping[str, Any]], label: str, pods: int) -> None:
        """Create these Runs; return once they have so many pods, which have this value of LABEL.

        Raises RuntimeError if one is refused.
        """
        with (
            PodWatch(self.plane, NAMESPACE, f"{LABEL}={label}") as watch,
            self.connect() as connection,
        ):
            for manifest in manifests:
                connection.must(post(collection(RUN), orjson.dumps(manifest), AGENT), 201)
            watch.created(pods)

    def until_all(self, runs: Collection[str], phase: str) -> None:
        """Return once all these Runs are in this phase."""
        wanted = set(runs)

        def reached() -> bool:
            found = {
                one["metadata"]["name"]
                for one in self.plane.api.get(collection(RUN))["items"]
                if one.get("status", {}).get("phase") == phase
            }
            return wanted <= found

        until(f"{len(wanted)} runs to be {phase}", reached)

    def clear_runs(self, runs: Sequence[str], label: str) -> None:
        """Delete these Runs, and the pods with this value of LABEL; return once all is gone."""
        api = self.plane.api
        for name in runs:
            api.call("DELETE", f"{collection(RUN)}/{name}", {"propagationPolicy": "Background"})
        until("the runs to go", lambda: not api.get(collection(RUN))["items"])
        self.clear_all("pods", f"{LABEL}={label}")

    def clear(self, arm: str, name: str) -> None:
        """Delete the arm's object and all pods and Services that it has; return once all is gone.

        The garbage collector would do the same, at its own pace.
        """
        api = self.plane.api
        path = f"{collection(arm)}/{name}"
        api.call("DELETE", path, {"propagationPolicy": "Background"})
        until("the object to go", lambda: api.get(path) is None)
        self.clear_all("pods", f"{LABEL}={name}")
        self.clear_all("services", f"training.kubeflow.org/job-name={name}")

    def clear_all(self, resource: str, selector: str) -> None:
        """Delete what the selector selects; return once all is gone."""
        api = self.plane.api
        path = f"{_NAMESPACED}/{resource}?labelSelector={quote(selector)}"

        def gone() -> bool:
            if not api.get(f"{path}&limit=1")["items"]:
                return True
            # On a busy machine it takes longer than a call may, but goes on.
            with contextlib.suppress(TimeoutError):
                api.call("DELETE", f"{path}&limit={_AT_ONCE}", {"gracePeriodSeconds": 0})
            return False

        until(f"the {resource} to go", gone)


def until(what: str, done: Callable[[], bool], patience: float = 300) -> None:
    """Return once it is done. Raises SandboxError if that takes more than `patience` seconds."""
    deadline = time.monotonic() + patience
    while not done():
        if time.monotonic() > deadline:
            raise SandboxError(f"waited in vain for {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def runs_arena(progress: Progress) -> Iterator[RunsArena]:
    """Set everything up."""
    operator = training_operator.obtain(progress)
    with serving(_COMPONENTS, progress, _EXTRA) as (plane, webhook):
        install_definitions(plane.api, [custom_resource_definition()])
        arena = RunsArena(plane, webhook, training_operator.install(plane, operator))
        arena.restart_controller()
        yield arena
