"""Runs Kubeflow's training operator, to measure beside it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from webhook.progress import Progress
from webhook.sandbox.api import wait_until
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator, obtain_operators
from webhook.sandbox.operators.install import (
    Installation,
    install_operator,
    plan_installation,
    start_operator,
)
from webhook.sandbox.operators.table import operators

NAME: Final = "training-operator"
# Controllers that start: one for each of six kinds of jobs, and that of its certificate.
_CONTROLLERS: Final = 7


def obtain(progress: Progress) -> BuiltOperator:
    """The operator from the cache, or built into it from its Go module. Raises SandboxError."""
    return obtain_operators([operators()[NAME]], progress)[NAME]


def install(plane: ControlPlane, operator: BuiltOperator) -> Installation:
    """Create what the operator finds in a cluster where it is installed by its manifests."""
    installation = plan_installation(operators()[NAME], operator)
    install_operator(plane, _kubectl(plane), installation)
    return installation


@contextlib.contextmanager
def running(plane: ControlPlane, installation: Installation) -> Iterator[int]:
    """Run the operator, with the defaults of its flags but for ports; gives its process id.

    Raises SandboxError if it is not ready in time.
    """
    log = plane.layout.directory / "logs" / f"{NAME}.log"
    # It goes on where an earlier process ended.
    said = log.stat().st_size if log.exists() else 0
    try:
        start_operator(plane, _kubectl(plane), installation)
        wait_until(
            NAME,
            # Its webhooks answer before all its controllers run: they say so in its log.
            lambda: log.read_bytes()[said:].count(b"Starting workers") >= _CONTROLLERS,
            lambda: None,
            time.monotonic() + 60,
        )
        yield plane.pids[NAME]
    finally:
        if NAME in plane.pids:
            plane.stop_component(NAME)


def _kubectl(plane: ControlPlane) -> Kubectl:
    return Kubectl(obtain_kubectl(Progress()), plane.kubeconfig)
