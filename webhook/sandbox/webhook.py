"""Puts Fairlead's webhook beside a control plane, and has pods sent to it."""

from __future__ import annotations

import socket
import ssl
import sys
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names, validating
from webhook.interception import DEFAULT_SOURCES, PATH, webhooks
from webhook.placement.capacity import MODES
from webhook.sandbox.ports import free_ports
from webhook.sandbox.readiness import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from webhook.sandbox.api import Api
    from webhook.sandbox.control_plane import ControlPlane

_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = f"{_REGISTRATION}/mutatingwebhookconfigurations"
_VALIDATING: Final = f"{_REGISTRATION}/validatingwebhookconfigurations"


@dataclass(frozen=True)
class Webhook:
    """A webhook that runs.

    `name` is its process's and its configuration's; `namespace` one whose pods it is sent.
    """

    name: str
    url: str
    health_url: str
    authority: Path
    namespace: str


def start_webhook(
    plane: ControlPlane,
    policies: Path | None,
    *,
    name: str = names.WEBHOOK_CONFIGURATION,
    namespaces: Sequence[str] = (),
    options: Sequence[str] = (),
    patience: float = 60,
) -> Webhook:
    """Run `fairlead serve` over the policies, and register it for these namespaces, or for all.

    Without a folder the policies are the control plane's own, which has to have their definitions;
    then it is registered for writes of policies and for workloads as well. `options` are more flags
    for the server. Returns once the API server really sends pods to it. Raises SandboxError, with
    the end of the server's log, if it exits, or is not ready in time: over policies that are not
    valid it never is.
    """
    ports = free_ports(["https", "health"])
    webhook = Webhook(
        name,
        f"https://127.0.0.1:{ports['https']}{PATH}",
        f"http://127.0.0.1:{ports['health']}",
        plane.layout.directory / f"{name}-ca.crt",
        namespaces[0] if namespaces else "default",
    )
    process = plane.start_process(
        name,
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
            *(("--policies", policies.absolute()) if policies else ("--policies-from-cluster",)),
            *("--kubeconfig", plane.kubeconfig),
            *("--host", "127.0.0.1"),
            *("--port", str(ports["https"]), "--health-port", str(ports["health"])),
            *("--self-signed", "--ca-out", webhook.authority),
            *options,
        ],
    )
    deadline = time.monotonic() + patience

    def wait(what: str, ready: Callable[[], bool]) -> None:
        wait_until(what, ready, process.check, deadline, process.last_words)

    wait("the webhook to listen", lambda: _listens(ports["https"], webhook.authority))
    configuration = mutating_webhook_configuration(
        webhook.url, webhook.authority.read_bytes(), only_namespaces=namespaces, name=name
    )
    plane.api.create(_CONFIGURATIONS, configuration)
    wait("the webhook's first answer", lambda: _in_effect(plane.api, webhook.namespace))
    if policies is None:
        configuration = validating_webhook_configuration(
            webhook.url.removesuffix(PATH),
            webhook.authority.read_bytes(),
            only_namespaces=namespaces,
            name=name,
        )
        plane.api.create(_VALIDATING, configuration)
        wait("the webhook's first judgement", lambda: _judges(plane.api))
    return webhook


def stop_webhook(plane: ControlPlane, webhook: Webhook, patience: float = 60) -> None:
    """Take it out of the API server's configuration, then kill it.

    In between no pod is refused for want of it. Raises SandboxError if the API server does not
    forget it within `patience` seconds.
    """
    plane.api.call("DELETE", f"{_CONFIGURATIONS}/{webhook.name}")
    judged = plane.api.call("DELETE", f"{_VALIDATING}/{webhook.name}")[0] == HTTPStatus.OK
    wait_until(
        "the API server to forget the webhook",
        lambda: (
            not _in_effect(plane.api, webhook.namespace) and not (judged and _judges(plane.api))
        ),
        lambda: None,
        time.monotonic() + patience,
    )
    plane.stop_component(webhook.name)


def _listens(port: int, authority: Path) -> bool:
    """Whether the server's certificate is one that its authority's file vouches for."""
    try:
        context = ssl.create_default_context(cafile=str(authority))
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            return True
    except OSError:
        # No file yet, half a file, nobody there: all of them are OSErrors, SSLError too.
        return False


def _judges(api: Api) -> bool:
    """Whether a policy for a class that nobody has is refused. Nothing is stored."""
    nowhere = {"capacity": [{"class": "fairlead-probe-of-no-class", "mode": MODES[0].value}]}
    policy = {
        "apiVersion": names.API_VERSION,
        "kind": names.POLICY_KIND,
        "metadata": {"name": "fairlead-probe"},
        "spec": {"enforcement": "Audit", "defaults": nowhere},
    }
    path = f"/apis/{names.API_VERSION}/{names.PLACEMENT_POLICIES}?dryRun=All"
    return api.call("POST", path, policy)[0] == HTTPStatus.FORBIDDEN


def _in_effect(api: Api, namespace: str) -> bool:
    """Whether a pod of a run comes out stamped, or refused by a policy. Nothing is stored."""
    pod: dict[str, Any] = {
        "metadata": {"name": "fairlead-probe", "labels": {names.RUN: "fairlead-probe"}},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    status, answer = api.call("POST", path, pod)
    if status < HTTPStatus.BAD_REQUEST:
        return names.PLACEMENT in answer["metadata"].get("annotations", {})
    return "denied the request" in answer["message"]


def mutating_webhook_configuration(
    url: str,
    ca_bundle: bytes,
    *,
    sources: Collection[str] = DEFAULT_SOURCES,
    failure_policy: str = "Fail",
    only_namespaces: Sequence[str] = (),
    name: str = names.WEBHOOK_CONFIGURATION,
) -> dict[str, Any]:
    """The configuration that has pods reviewed at `url`, which `ca_bundle` (PEM) vouches for.

    Of `sources` and `only_namespaces` see `webhook.interception.webhooks`.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": webhooks(
            sources,
            url=url,
            ca_bundle=ca_bundle,
            failure_policy=failure_policy,
            only_namespaces=only_namespaces,
        ),
    }


def validating_webhook_configuration(
    url: str,
    ca_bundle: bytes,
    *,
    only_namespaces: Sequence[str] = (),
    name: str = names.WEBHOOK_CONFIGURATION,
) -> dict[str, Any]:
    """The configuration by which writes of policies are judged and workloads commented on.

    `url` is the server's, without a path; `ca_bundle` (PEM) vouches for it.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": validating.webhooks(
            url=url, ca_bundle=ca_bundle, only_namespaces=only_namespaces
        ),
    }
