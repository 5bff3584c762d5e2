"""A Run on the demo's control plane: created, looked at until it runs, and ended."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.cli.demo.admitted import Admitted
from webhook.cli.demo.examples import RUN_FILE
from webhook.cli.demo.whole_run import Ran, pods_of
from webhook.errors import SandboxError
from webhook.run.rendezvous.table import end_role

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan
    from webhook.sandbox.kubectl import Kubectl

_PATIENCE: Final = 60.0  # seconds
_PAUSE: Final = 0.1  # seconds


def ran(kubectl: Kubectl, plan: Plan) -> Ran:
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
