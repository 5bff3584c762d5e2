"""Makes the sandbox's API server serve the objects of a CustomResourceDefinition."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.readiness import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.sandbox.api import Api

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# What kubectl reads to learn which kinds there are (KEP-3352, aggregated discovery).
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def install_definition(api: Api, definition: Mapping[str, Any], patience: float = 30) -> None:
    """Create the CustomResourceDefinition, and return once kubectl can create its objects.

    Raises SandboxError if it is refused, or there already, or not established in time.
    """
    api.create(_DEFINITIONS, definition)
    name, spec = definition["metadata"]["name"], definition["spec"]
    version = spec["versions"][0]["name"]
    objects = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"

    def served() -> bool:
        status = api.get(f"{_DEFINITIONS}/{name}").get("status", {})
        established = any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in status.get("conditions") or ()
        )
        # For a moment it answers that its storage is initializing, and for another one kubectl is
        # not told of the kind.
        return (
            established
            and api.call("GET", objects)[0] == HTTPStatus.OK
            and spec["names"]["plural"] in _discovered(api, spec["group"], version)
        )

    wait_until(name, served, lambda: None, time.monotonic() + patience)


def _discovered(api: Api, group: str, version: str) -> set[str]:
    """The plurals of the kinds of this group and version that kubectl is told of."""
    status, answer = api.call("GET", "/apis", accept=_DISCOVERY)
    if status != HTTPStatus.OK:
        return set()
    return {
        resource["resource"]
        for each in answer["items"]
        if each["metadata"]["name"] == group
        for served in each["versions"]
        if served["version"] == version
        for resource in served["resources"]
    }


def definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of Runs and of every kind that policies have."""
    return [custom_resource_definition(), *custom_resource_definitions().values()]


def install_run_api(api: Api, patience: float = 30) -> None:
    """Create the CustomResourceDefinition, and return once Runs can be created.

    Raises SandboxError if it is refused, or there already, or not established in time.
    """
    install_definition(api, custom_resource_definition(), patience)
