"""Builds and runs Kueue beside a control plane, as its own manifests install it."""

from __future__ import annotations

import base64
import contextlib
import http
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.fast_yaml import load_all_yaml
from tests.operators import built
from tests.operators.built import Built, Json
from webhook.errors import SandboxError
from webhook.sandbox.api import wait_until
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.modules import Module, Program
from webhook.sandbox.processes import free_ports
from webhook.sandbox.progress import Progress

NAME: Final = "kueue"
MODULE: Final = Module(NAME, "sigs.k8s.io/kueue", Path(__file__).parent / "go")
_PROGRAM: Final = Program(NAME, MODULE, f"{MODULE.path}/cmd/kueue", 430)
_API: Final = "kueue.x-k8s.io/v1beta2"
_NAMESPACE: Final = "kueue-system"
_ACCOUNT: Final = "kueue-controller-manager"
_SERVICE: Final = "kueue-webhook-service"
_CERTIFICATE: Final = "kueue-webhook-server-cert"
# It runs as a process here, and its API of pending workloads wants a port and a folder of its own.
_LEFT_OUT: Final = ("Deployment", "ConfigMap", "Service", "APIService")


def obtain(progress: Progress) -> Built:
    """Kueue from the cache, or built into it from its Go module. Raises SandboxError."""
    kubectl = obtain_kubectl(progress)

    def manifests(source: Path) -> Iterator[Json]:
        command = [str(kubectl), "kustomize", str(source / "config" / "default")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"Kueue's manifests cannot be made: {done.stderr[-2000:]}")
        found = load_all_yaml(done.stdout)
        return (each for each in found if each["kind"] not in _LEFT_OUT)

    return built.obtain(_PROGRAM, manifests, progress)


@contextlib.contextmanager
def running(plane: ControlPlane, kubectl: Kubectl, operator: Built) -> Iterator[None]:
    """Install and run Kueue for Jobs, pods, Deployments and StatefulSets.

    The control plane is its own from here on. It has the rights of its own account and makes its
    own certificate. Where its webhooks are installed behind a Service, here that Service is a name
    for this machine. Raises SandboxError if it is not ready in time.
    """
    port = free_ports(["webhook"])["webhook"]
    items = [*_manifests(operator, port), _service()]
    wanted = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    # They are the module's own: to validate them against the API's whole schema takes seconds.
    kubectl("create", "--validate=false", "-f", "-", stdin=wanted)
    folder = plane.layout.directory / NAME
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(json.dumps(_configuration(folder, port)))
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(plane, kubectl)))
    process = plane.start_process(
        NAME, [operator.program, f"--config={config}", f"--kubeconfig={kubeconfig}"]
    )
    deadline = time.monotonic() + 120
    try:
        for what, ready in (
            ("Kueue's certificate", lambda: _mounted(plane, folder)),
            ("Kueue's first answer", lambda: _answers(plane)),
        ):
            wait_until(what, ready, process.check, deadline, process.log_tail)
        yield
    finally:
        plane.stop_component(NAME)


def _manifests(operator: Built, port: int) -> Iterator[Json]:
    """Those of the module, with the port of this process wherever webhooks are named."""
    for manifest in operator.manifests():
        spec = manifest.get("spec", {})
        conversion = spec.get("conversion", {}) if "versions" in spec else {}
        for hook in (*manifest.get("webhooks", ()), conversion.get("webhook", {})):
            if service := hook.get("clientConfig", {}).get("service"):
                service["port"] = port
        yield manifest


def _service() -> Json:
    """What the API server resolves to this machine; a Service of endpoints refuses loopback."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _SERVICE, "namespace": _NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _configuration(folder: Path, port: int) -> Json:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": _NAMESPACE,
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": _SERVICE,
            "webhookSecretName": _CERTIFICATE,
        },
        "integrations": {"frameworks": ["batch/job", "pod", "deployment", "statefulset"]},
        "featureGates": {"VisibilityOnDemand": False},
    }


def _kubeconfig(plane: ControlPlane, kubectl: Kubectl) -> Json:
    """Of Kueue's own ServiceAccount, which its manifests have given its rights."""
    token = kubectl("create", "token", _ACCOUNT, f"--namespace={_NAMESPACE}").strip()
    authority = str(plane.layout.credentials / "ca.crt")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": NAME, "cluster": {"server": plane.url, "certificate-authority": authority}}
        ],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }


def _mounted(plane: ControlPlane, folder: Path) -> bool:
    """Write the certificate where Kueue looks for it, as the kubelet does; False if none is made.

    It makes one at its start and waits until it is there.
    """
    secret = plane.api.get(f"/api/v1/namespaces/{_NAMESPACE}/secrets/{_CERTIFICATE}")
    data: dict[str, Any] = secret.get("data") or {}
    # Last, for it is what Kueue looks for.
    for key in ("tls.key", "tls.crt"):
        if key in data:
            (folder / key).write_bytes(base64.b64decode(data[key]))
    return "tls.crt" in data


def _answers(plane: ControlPlane) -> bool:
    """Whether the API server gets Kueue's word on queues of both kinds. Nothing is stored.

    Kueue says that it is ready when it listens, and the API server may not know by then whom to
    trust.
    """
    return all(
        plane.api.call(
            "POST",
            f"/apis/{_API}/{path}?dryRun=All",
            {"apiVersion": _API, "kind": kind, "metadata": {"name": "probe"}, "spec": {}},
        )[0]
        == http.HTTPStatus.CREATED
        for kind, path in (
            ("ClusterQueue", "clusterqueues"),
            ("LocalQueue", "namespaces/default/localqueues"),
        )
    )
