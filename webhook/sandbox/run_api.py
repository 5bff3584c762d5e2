"""Makes the sandbox's API server serve Runs."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.run.crd import NAME, custom_resource_definition
from webhook.sandbox.readiness import wait_until

if TYPE_CHECKING:
    from webhook.sandbox.api import Api

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RUNS: Final = f"/apis/{names.API_VERSION}/{names.RUNS}"


def install_run_api(api: Api, patience: float = 30) -> None:
    """Create the CustomResourceDefinition, and return once Runs can be created.

    Raises SandboxError if it is refused, or there already, or not established in time.
    """
    api.create(_DEFINITIONS, custom_resource_definition())

    def served() -> bool:
        status = api.get(f"{_DEFINITIONS}/{NAME}").get("status", {})
        established = any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in status.get("conditions") or ()
        )
        # For a moment it answers that its storage is initializing.
        return established and api.call("GET", _RUNS)[0] == HTTPStatus.OK

    wait_until(NAME, served, lambda: None, time.monotonic() + patience)
