"""What makes an API server serve Runs, and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.definition import install_definition

if TYPE_CHECKING:
    from typing import Any

    from webhook.sandbox.api import Api


def definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of Runs and of every kind that policies have."""
    return [custom_resource_definition(), *custom_resource_definitions().values()]


def install_run_api(api: Api, patience: float = 30) -> None:
    """Create the CustomResourceDefinition, and return once Runs can be created.

    Raises SandboxError if it is refused, or there already, or not established in time.
    """
    install_definition(api, custom_resource_definition(), patience)
