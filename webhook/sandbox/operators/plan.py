"""Plan an operator's installation: choose its ports, and sort the manifests of its module."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.processes import free_ports

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.sandbox.operators.build import BuiltOperator
    from webhook.sandbox.operators.table import Json, Operator

_DEFINITION: Final = "CustomResourceDefinition"
# The operator is a process here. Its configuration is the row's, its Service is made below, and an
# aggregated API would need a port and a certificate of its own.
_LEFT_OUT: Final = ("Deployment", "ConfigMap", "Service", "APIService")


@dataclass(frozen=True)
class Installation:
    """What one operator needs in one control plane.

    ports: by name; definitions, objects: what is created before it starts; own: objects of its own
    kinds, which its webhooks judge, so they are created once it is ready.
    """

    operator: Operator
    built: BuiltOperator
    ports: Mapping[str, int]
    arguments: tuple[str, ...]
    definitions: tuple[Json, ...]
    objects: tuple[Json, ...]
    own: tuple[Json, ...]


def plan_installation(
    operator: Operator, built: BuiltOperator, others: Collection[str] = ()
) -> Installation:
    """Choose ports, and sort the operator's manifests. `others` are operators of the same sandbox.

    Raises SandboxError if another process has a port that the operator fixes.
    """
    beside = [each for name, each in operator.beside.items() if name in others]
    without = {name for each in beside for name in each.without}
    ports = _choose_ports(operator)
    found = [each for each in built.manifests() if each["kind"] not in _LEFT_OUT]
    found = [each for each in found if each["metadata"]["name"] not in without]
    services = _redirect_webhooks(found, ports.get("webhook", 0))
    definitions = [each for each in found if each["kind"] == _DEFINITION]
    groups = {each["spec"]["group"] for each in definitions}
    own = [each for each in found if each["apiVersion"].partition("/")[0] in groups]
    return Installation(
        operator,
        built,
        ports,
        (*operator.arguments, *(text for each in beside for text in each.arguments)),
        tuple(definitions),
        (
            *operator.objects,
            *(each for each in found if each not in definitions and each not in own),
            *services,
        ),
        tuple(own),
    )


def plan_installations(
    wanted: Sequence[Operator], built: Mapping[str, BuiltOperator]
) -> list[Installation]:
    """Plan the operators of one control plane, in their order."""
    names = [each.name for each in wanted]
    return [plan_installation(each, built[each.name], names) for each in wanted]


def _choose_ports(operator: Operator) -> dict[str, int]:
    chosen = free_ports([name for name, port in operator.ports.items() if port == "any"])
    fixed = {name: port for name, port in operator.ports.items() if port != "any"}
    for port in fixed.values():
        with socket.socket() as tried:
            try:
                tried.bind(("", port))
            except OSError as error:
                raise SandboxError(
                    f"operator {operator.name} listens on port {port}, and no option changes that:"
                    f" {error.strerror}; end the process that has it, such as the same operator in"
                    " another sandbox"
                ) from error
    return {**chosen, **fixed}


def _redirect_webhooks(manifests: list[Json], port: int) -> list[Json]:
    """Lead webhooks to the port of this machine; return the Services that do so.

    An ExternalName is what the API server resolves to this machine: a Service of endpoints refuses
    loopback, and operators issue certificates for the name of their Service, not for an address.
    """
    names: dict[tuple[str, str], None] = {}
    for manifest in manifests:
        spec = manifest.get("spec", {})
        conversion = spec.get("conversion", {}) if manifest["kind"] == _DEFINITION else {}
        for hook in (*manifest.get("webhooks", ()), conversion.get("webhook", {})):
            if service := hook.get("clientConfig", {}).get("service"):
                service["port"] = port
                names[service["namespace"], service["name"]] = None
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        for namespace, name in names
    ]
