"""Builds and runs Kubeflow's training operator, to measure beside it."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.fast_yaml import load_yaml
from tests.operators import built
from tests.operators.built import Built
from webhook.sandbox.api import wait_until
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.modules import Module, Program
from webhook.sandbox.processes import free_ports
from webhook.sandbox.progress import Progress

NAME: Final = "training-operator"
MODULE: Final = Module(NAME, "github.com/kubeflow/training-operator", Path(__file__).parent)
_PROGRAM: Final = Program(NAME, MODULE, f"{MODULE.path}/cmd/training-operator.v1", 120)
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMESPACE: Final = "kubeflow"
# Where the operator looks whether its certificate is mounted; no flag says otherwise.
_MOUNTED: Final = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108
# Controllers that start: one for each of six kinds of jobs, and that of its certificate.
_CONTROLLERS: Final = 7


def obtain(progress: Progress) -> Built:
    """The operator from the cache, or built into it from its Go module. Raises SandboxError."""
    return built.obtain(_PROGRAM, _crds, progress)


def _crds(source: Path) -> Iterator[built.Json]:
    folder = source / "manifests" / "base" / "crds"
    return (load_yaml(file.read_text()) for file in sorted(folder.glob("kubeflow.org_*.yaml")))


def install(plane: ControlPlane, operator: Built) -> None:
    """Create what the operator finds in a cluster where it is installed by its manifests.

    Its own validating webhook is left out: that would be asked once a PyTorchJob, and can be
    reached through a Service only.
    """
    for crd in operator.manifests():
        plane.api.create(_CRDS, crd)
    plane.create_namespace(_NAMESPACE)
    secret = {"metadata": {"name": "training-operator-webhook-cert"}}
    plane.api.create(f"/api/v1/namespaces/{_NAMESPACE}/secrets", secret)


@contextlib.contextmanager
def running(plane: ControlPlane, operator: Built) -> Iterator[int]:
    """Run the operator, with the defaults of its flags but for ports; gives its process id.

    Raises SandboxError if it is not ready in time.
    """
    ports = free_ports(["metrics", "health", "webhook"])
    own = plane.layout.directory / "k8s-webhook-server" / "serving-certs"
    pki = plane.layout.credentials
    with contextlib.ExitStack() as stack:
        for folder in (own, _MOUNTED):
            folder.mkdir(parents=True, exist_ok=True)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            shutil.copy(pki / "serving.crt", folder / "tls.crt")
        # Any key will do: its webhook has to start, but is not asked.
        shutil.copy(pki / "serving.key", own / "tls.key")
        log = plane.layout.directory / "logs" / f"{NAME}.log"
        # It goes on where an earlier process ended.
        said = log.stat().st_size if log.exists() else 0
        process = plane.start_process(
            NAME,
            [
                operator.program,
                f"--kubeconfig={plane.kubeconfig}",
                f"--metrics-bind-address=127.0.0.1:{ports['metrics']}",
                f"--health-probe-bind-address=127.0.0.1:{ports['health']}",
                f"--webhook-server-port={ports['webhook']}",
            ],
        )
        stack.callback(plane.stop_component, NAME)
        wait_until(
            NAME,
            # It says that it is ready before its controllers run: they say so in its log.
            lambda: log.read_bytes()[said:].count(b"Starting workers") >= _CONTROLLERS,
            process.check,
            time.monotonic() + 60,
            process.log_tail,
        )
        yield process.pid
