"""How an operator's manifests are sorted for a sandbox."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from webhook.errors import SandboxError
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import plan_installation
from webhook.sandbox.operators.table import Beside, Operator, operators

KUEUE = operators()["kueue"]
HOOK = {"clientConfig": {"service": {"name": "hooks", "namespace": "box", "port": 443}}}


def manifest(kind: str, name: str, api: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **more}


MANIFESTS = [
    manifest("Namespace", "box"),
    manifest("Deployment", "operator", "apps/v1"),
    manifest("Service", "hooks"),
    manifest("ConfigMap", "config"),
    manifest(
        "CustomResourceDefinition",
        "things.example.org",
        "apiextensions.k8s.io/v1",
        spec={"group": "example.org", "conversion": {"webhook": HOOK}},
    ),
    manifest("Thing", "shipped", "example.org/v1"),
    manifest("ValidatingWebhookConfiguration", "judge", "a/v1", webhooks=[HOOK, HOOK]),
    manifest("APIService", "v1.more", spec={"service": {"name": "more", "namespace": "box"}}),
]


@pytest.fixture
def built(tmp_path: Path) -> BuiltOperator:
    """An operator with these manifests."""
    file = tmp_path / "manifests.json"
    file.write_text(json.dumps(MANIFESTS))
    return BuiltOperator((tmp_path / "program",), "v1", file)


def with_port(port: int) -> Operator:
    """An operator whose port no option changes."""
    return KUEUE.model_copy(update={"ports": {"health": port}})


def test_its_own_objects_come_last_and_its_deployment_never(built: BuiltOperator) -> None:
    """Its webhooks judge objects of its own kinds, so they wait until it is ready."""
    planned = plan_installation(KUEUE, built)
    assert [each["kind"] for each in planned.definitions] == ["CustomResourceDefinition"]
    assert [each["metadata"]["name"] for each in planned.later_objects] == ["shipped"]
    kinds = [each["kind"] for each in planned.objects]
    named = ["Namespace", "ValidatingWebhookConfiguration", "APIService"]
    assert kinds == [*named, "Service", "Service"]


def test_webhooks_and_apis_lead_to_this_machine(built: BuiltOperator) -> None:
    """Through one Service by each expected name, for all webhooks and conversions."""
    planned = plan_installation(KUEUE, built)
    *_, api, hooks_service, api_service = planned.objects
    for service, name in ((hooks_service, "hooks"), (api_service, "more")):
        assert service["metadata"] == {"name": name, "namespace": "box"}
        assert service["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    assert api["spec"]["service"]["port"] == planned.ports["api"]
    hooks = [
        *planned.objects[1]["webhooks"],
        planned.definitions[0]["spec"]["conversion"]["webhook"],
    ]
    ports = {hook["clientConfig"]["service"]["port"] for hook in hooks}
    assert ports == {planned.ports["webhook"]}


def test_beside_another_operator_it_yields_what_the_other_brings(built: BuiltOperator) -> None:
    """A definition that both own, and the arguments that say so."""
    beside = Beside(arguments=["--fewer"], without=["things.example.org"])
    operator = KUEUE.model_copy(update={"beside": {"other": beside}})
    alone = plan_installation(operator, built, ["kueue"])
    both = plan_installation(operator, built, ["kueue", "other"])
    assert (len(alone.definitions), len(both.definitions)) == (1, 0)
    assert both.arguments == (*alone.arguments, "--fewer")


def test_a_fixed_port_that_is_taken_is_an_error_with_the_cure(built: BuiltOperator) -> None:
    """The operator would only exit later, with its own words."""
    with socket.socket() as other:
        other.bind(("", 0))
        port = other.getsockname()[1]
        wanted = rf"port {port}, and no option changes that: .*; end the process"
        with pytest.raises(SandboxError, match=wanted):
            plan_installation(with_port(port), built)
    assert plan_installation(with_port(port), built).ports == {"health": port}
