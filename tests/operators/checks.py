"""Plays the controller of an admission check of Kueue, which is always a cluster's own."""

from __future__ import annotations

import json
from typing import Final

from tests.cluster.manifests import Json
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.objects import an_object
from webhook.sandbox.kubectl import Kubectl

CHECK: Final = "capacity-found"
MANIFEST: Final[Json] = an_object(
    "kueue.x-k8s.io/v1beta2", "AdmissionCheck", CHECK, {"controllerName": "example.invalid/tests"}
)
_CHANGED: Final = "lastTransitionTime"
_LONG_AGO: Final = "2026-01-01T00:00:00Z"


def begin(kubectl: Kubectl) -> None:
    """Say that the controller is there: Kueue admits nothing to its queues before."""
    active = {"type": "Active", "status": "True", "reason": "Played", "message": ""}
    _say(kubectl, "admissioncheck", CHECK, {"conditions": [active | {_CHANGED: _LONG_AGO}]})


def pass_with(space: Space, **update: object) -> None:
    """Let the only Workload of the namespace pass, and have Kueue put this into its pods.

    Returns when Kueue has admitted it.
    """

    def passed() -> bool:
        for found in space.kubectl.json("get", "workloads")["items"]:
            status = found.get("status", {})
            stand = {each["type"]: each["status"] for each in status.get("conditions", ())}
            if "Admitted" in stand:
                return True
            # Kueue may have written the status from what it knew before: then it is said again.
            states = {each["state"] for each in status.get("admissionChecks", ())}
            if stand.get("QuotaReserved") == "True" and states == {"Pending"}:
                podsets = [{"name": each["name"], **update} for each in found["spec"]["podSets"]]
                ready = {"name": CHECK, "state": "Ready", "message": "", _CHANGED: _LONG_AGO}
                said = {"admissionChecks": [{**ready, "podSetUpdates": podsets}]}
                _say(space.kubectl, "workload", found["metadata"]["name"], said)
        return False

    eventually("Kueue admits what has passed the check", passed)


def _say(kubectl: Kubectl, kind: str, name: str, status: Json) -> None:
    said = json.dumps({"status": status})
    kubectl("patch", kind, name, "--subresource=status", "--type=merge", f"--patch={said}")
