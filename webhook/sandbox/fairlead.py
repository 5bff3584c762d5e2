"""Run Fairlead's webhook and controller beside a control plane, and register the webhook."""

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
from webhook.sandbox.api import is_ready, wait_until
from webhook.sandbox.processes import free_ports
from webhook.sandbox.rights import account

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webhook.sandbox.api import Api
    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.processes import Process

_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = f"{_REGISTRATION}/mutatingwebhookconfigurations"
_VALIDATING: Final = f"{_REGISTRATION}/validatingwebhookconfigurations"
CONTROLLER_NAME: Final = "fairlead-controller"
_READY_TIMEOUT_SECONDS: Final = 60  # seconds until a program is ready


@dataclass(frozen=True)
class Webhook:
    """A running webhook.

    `name` is that of its process and its configuration; `namespace` is one whose pods it gets.
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
    sources: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Webhook:
    """Run `fairlead serve` as its own user, and register it for these namespaces, or for all.

    It gets the pods of DEFAULT_SOURCES, and those that the rows `sources` of the sources mark.
    Without a folder, the policies are the control plane's own objects, whose definitions must
    exist; then it is also registered for writes of policies and for workloads. `options` are more
    flags. Returns when the API server sends pods to it. Raises SandboxError, with the end of the
    log, if it exits or is not ready in time, such as with invalid policies.
    """
    ports = free_ports(["https", "health"])
    webhook = Webhook(
        name,
        f"https://127.0.0.1:{ports['https']}{PATH}",
        f"http://127.0.0.1:{ports['health']}",
        plane.layout.directory / f"{name}-ca.crt",
        namespaces[0] if namespaces else "default",
    )
    source = ("--policies", str(policies.absolute())) if policies else ("--policies-from-cluster",)
    process = plane.start_process(
        name,
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
            *source,
            *("--kubeconfig", account(plane, names.WEBHOOK, (*source, *options))),
            *("--host", "127.0.0.1"),
            *("--port", str(ports["https"]), "--health-port", str(ports["health"])),
            *("--self-signed", "--ca-out", webhook.authority),
            *options,
        ],
    )
    deadline = time.monotonic() + _READY_TIMEOUT_SECONDS

    def wait(what: str, ready: Callable[[], bool]) -> None:
        wait_until(what, ready, process.check, deadline, process.log_tail)

    wait("the webhook to listen", lambda: _listens(ports["https"], webhook.authority))
    configuration = mutating_webhook_configuration(
        webhook.url,
        webhook.authority.read_bytes(),
        only_namespaces=namespaces,
        name=name,
        sources=sources,
    )
    plane.api.create(_CONFIGURATIONS, configuration)
    wait("the webhook's first answer", lambda: _in_effect(plane.api, webhook.namespace))
    if policies is None:
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": validating.webhooks(
                url=webhook.url.removesuffix(PATH),
                ca_bundle=webhook.authority.read_bytes(),
                only_namespaces=namespaces,
            ),
        }
        plane.api.create(_VALIDATING, configuration)
        wait("the webhook's first judgement", lambda: _judges(plane.api))
    return webhook


def stop_webhook(plane: ControlPlane, webhook: Webhook) -> None:
    """Remove it from the API server's configuration, then kill it.

    No pod is rejected meanwhile. Raises SandboxError if the API server still calls it after a
    minute.
    """
    plane.api.call("DELETE", f"{_CONFIGURATIONS}/{webhook.name}")
    judged = plane.api.call("DELETE", f"{_VALIDATING}/{webhook.name}")[0] == HTTPStatus.OK
    wait_until(
        "the API server to forget the webhook",
        lambda: (
            not _in_effect(plane.api, webhook.namespace) and not (judged and _judges(plane.api))
        ),
        lambda: None,
        time.monotonic() + _READY_TIMEOUT_SECONDS,
    )
    plane.stop_component(webhook.name)


def _listens(port: int, authority: Path) -> bool:
    """Return whether the server has a certificate of the authority in the file."""
    try:
        context = ssl.create_default_context(cafile=str(authority))
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1"),
        ):
            return True
    except OSError:
        # A missing file, an incomplete file, no server: all are OSErrors, like SSLError.
        return False


def _judges(api: Api) -> bool:
    """Return whether a policy for an unknown class is rejected. Nothing is stored."""
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
    """Return whether a pod of a run gets a stamp, or is rejected by a policy. Nothing is stored."""
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
    failure_policy: str = "Fail",
    only_namespaces: Sequence[str] = (),
    name: str = names.WEBHOOK_CONFIGURATION,
    sources: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the configuration that sends pods to `url`, whose certificate `ca_bundle` (PEM)
    verifies.

    `sources` are rows beside DEFAULT_SOURCES. For `only_namespaces` see
    `webhook.interception.webhooks`.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": webhooks(
            [*DEFAULT_SOURCES, *sources],
            url=url,
            ca_bundle=ca_bundle,
            failure_policy=failure_policy,
            only_namespaces=only_namespaces,
        ),
    }


@dataclass(frozen=True)
class SandboxController:
    """A running controller. `name` is that of its process."""

    name: str
    health_port: int
    process: Process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def ready(self) -> bool:
        """Whether it reports that it is ready."""
        return is_ready(self.health_port)


def start_controller(
    plane: ControlPlane,
    *,
    name: str = CONTROLLER_NAME,
    kubeconfig: Path | None = None,
    options: Sequence[str] = (),
    backends: Sequence[str] = (),
    python: str | Path = sys.executable,
    wait: bool = True,
) -> SandboxController:
    """Run `fairlead controller` as its own user, where Runs are served already.

    It has the rights that an installation with these `options`, its flags, and `backends` gives it;
    with a `kubeconfig` of another user, none are granted. Its version is the one that is installed
    for `python`. With `wait` it returns once its caches are filled. Raises SandboxError, with the
    end of its log, if it exits, or is not ready in time.
    """
    if kubeconfig is None:
        more = [f"backend-{backend}" for backend in backends]
        kubeconfig = account(plane, names.CONTROLLER, options, more)
    port = free_ports(["health"])["health"]
    process = plane.start_process(
        name,
        [
            *(python, "-c", "from webhook.cli import main; main()", "controller"),
            *("--kubeconfig", kubeconfig),
            *("--host", "127.0.0.1", "--health-port", str(port)),
            *options,
        ],
    )
    controller = SandboxController(name, port, process)
    if wait:
        deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
        wait_until(
            "the controller's caches",
            lambda: controller.ready,
            process.check,
            deadline,
            process.log_tail,
        )
    return controller
