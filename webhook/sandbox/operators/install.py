"""Install an operator in a control plane, and run it as a process with its own account's rights.

Its plan has its ports, and the manifests of its module, sorted.
"""

from __future__ import annotations

import base64
import contextlib
import http
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import SandboxError
from webhook.sandbox.api import install_definitions, is_ready, missing_definitions, wait_until
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.cache_folder import cache_directory, locked
from webhook.sandbox.credentials import kubeconfig
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from webhook.progress import Progress
    from webhook.sandbox.api import Api
    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.operators.build import BuiltOperator
    from webhook.sandbox.operators.table import Json, Operator

_DEFINITION: Final = "CustomResourceDefinition"
# The operator is a process here. Its configuration is the row's, and its Services are made below.
_LEFT_OUT: Final = ("Deployment", "ConfigMap", "Service")


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
    later_objects: tuple[Json, ...]


def plan_installation(
    operator: Operator, built: BuiltOperator, others: Collection[str] = ()
) -> Installation:
    """Choose ports, and sort the operator's manifests. `others` are operators of the same sandbox.

    Raises SandboxError if another process has a port that the operator fixes.
    """
    beside = [neighbour for name, neighbour in operator.beside.items() if name in others]
    without = {name for neighbour in beside for name in neighbour.without}
    ports = _choose_ports(operator)
    manifests = [manifest for manifest in built.manifests() if manifest["kind"] not in _LEFT_OUT]
    manifests = [manifest for manifest in manifests if manifest["metadata"]["name"] not in without]
    services = _redirect_services(manifests, ports)
    definitions = [manifest for manifest in manifests if manifest["kind"] == _DEFINITION]
    groups = {definition["spec"]["group"] for definition in definitions}
    custom_objects = [
        manifest for manifest in manifests if manifest["apiVersion"].partition("/")[0] in groups
    ]
    return Installation(
        operator,
        built,
        ports,
        (*operator.arguments, *(text for neighbour in beside for text in neighbour.arguments)),
        tuple(definitions),
        (
            *operator.objects,
            *(
                manifest
                for manifest in manifests
                if manifest not in definitions and manifest not in custom_objects
            ),
            *services,
        ),
        tuple(custom_objects),
    )


def plan_installations(
    wanted: Sequence[Operator], built: Mapping[str, BuiltOperator]
) -> list[Installation]:
    """Plan the operators of one control plane, in their order."""
    names = [operator.name for operator in wanted]
    return [plan_installation(operator, built[operator.name], names) for operator in wanted]


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


def _redirect_services(manifests: list[Json], ports: Mapping[str, int]) -> list[Json]:
    """Lead webhooks and aggregated APIs to ports of this machine; return the Services that do so.

    An ExternalName is what the API server resolves to this machine: a Service of endpoints refuses
    loopback, and operators issue certificates for the name of their Service, not for an address.
    """
    names: dict[tuple[str, str], None] = {}
    for manifest in manifests:
        spec = manifest.get("spec", {})
        conversion = spec.get("conversion", {}) if manifest["kind"] == _DEFINITION else {}
        hooks = (*manifest.get("webhooks", ()), conversion.get("webhook", {}))
        wanted = [("webhook", hook.get("clientConfig", {}).get("service")) for hook in hooks]
        if manifest["kind"] == "APIService":
            wanted.append(("api", spec["service"]))
        for port, service in wanted:
            if service:
                service["port"] = ports.get(port, 0)
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


# Below $TMPDIR, where controller-runtime looks by default.
_CERTIFICATES: Final = Path("k8s-webhook-server", "serving-certs")
_READY_TIMEOUT_SECONDS: Final = 120  # seconds until an operator is ready
_TOKEN_SECONDS: Final = 365 * 24 * 3600


def start_operators(
    plane: ControlPlane, planned: Sequence[Installation], progress: Progress
) -> None:
    """Install and start the operators in their order; return once all work."""
    for installation in planned:
        kubectl = Kubectl(obtain_kubectl(progress), plane.kubeconfig)
        with progress.step(f"starting operator {installation.operator.name}", about=5):
            install_operator(plane, kubectl, installation)
            start_operator(plane, kubectl, installation)


def install_operator(plane: ControlPlane, kubectl: Kubectl, installation: Installation) -> None:
    """Create what the operator's own installation creates, except for its Deployment.

    Raises SandboxError with the API server's words if something is refused.
    """
    install_definitions(plane.api, missing_definitions(plane.api, installation.definitions))
    _create(kubectl, installation.objects)


def _create(kubectl: Kubectl, objects: tuple[Json, ...]) -> None:
    if objects:
        wanted = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        # They are the module's own: to validate them against the whole schema takes seconds.
        kubectl(*("create", "--validate=false", "--request-timeout=60s", "-f", "-"), stdin=wanted)


def start_operator(plane: ControlPlane, kubectl: Kubectl, installation: Installation) -> None:
    """Run the installed operator; return once it works. `stop_component` ends it.

    Raises SandboxError, with the end of its log, if it exits or is not ready within two minutes.
    """
    operator = installation.operator
    folder = plane.layout.directory / "operators" / operator.name
    certificates = folder / _CERTIFICATES
    certificates.mkdir(parents=True, exist_ok=True)
    values: dict[str, str | int] = {
        "folder": str(folder),
        "certificates": str(certificates),
        "config": str(folder / "config.json"),
        "kubeconfig": str(folder / "kubeconfig"),
        "api_port": plane.layout.ports["kube-apiserver"],
        **installation.ports,
    }
    (folder / "config.json").write_text(json.dumps(fill_placeholders(operator.config, values)))
    (folder / "kubeconfig").touch(mode=0o600)
    (folder / "kubeconfig").write_text(_kubeconfig(plane, operator))
    api = plane.api
    with _certificate_sign(operator) as sign:
        process = plane.start_process(
            operator.name,
            [*installation.built.command, *fill_placeholders(installation.arguments, values)],
            {
                "KUBECONFIG": str(folder / "kubeconfig"),
                "TMPDIR": str(folder),
                **{
                    key: str(fill_placeholders(text, values))
                    for key, text in operator.environment.items()
                },
            },
        )
        waits: list[tuple[str, Callable[[], bool]]] = []
        if operator.certificate:
            waits.append(("certificate", lambda: _mount(api, operator, certificates, sign)))
        if operator.health:
            port = installation.ports["health"]
            waits.append(("health", lambda: is_ready(port, operator.health)))
        refusals: list[str] = []
        waits.append(("webhooks", lambda: _accepts(api, operator.probes, refusals)))
        deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
        for what, ready in waits:
            wait_until(
                f"operator {operator.name}: its {what}",
                ready,
                process.check,
                deadline,
                lambda: "\n".join([*refusals, process.log_tail()]),
            )
    _create(kubectl, installation.later_objects)


def fill_placeholders(content: Any, values: Mapping[str, str | int]) -> Any:
    """Return the content with the values in place of {names}; a port alone stays a number."""
    if isinstance(content, dict):
        return {key: fill_placeholders(child, values) for key, child in content.items()}
    if isinstance(content, list | tuple):
        return [fill_placeholders(child, values) for child in content]
    if not isinstance(content, str):
        return content
    alone = values.get(content[1:-1]) if content.startswith("{") else None
    return alone if isinstance(alone, int) else content.format_map(values)


def _kubeconfig(plane: ControlPlane, operator: Operator) -> str:
    account = f"/api/v1/namespaces/{operator.namespace}/serviceaccounts/{operator.account}"
    request = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
    token = plane.api.create(f"{account}/token", request)["status"]["token"]
    authority = (plane.layout.credentials / "ca.crt").read_bytes()
    return kubeconfig(plane.url, authority, {"token": token})


@contextlib.contextmanager
def _certificate_sign(operator: Operator) -> Iterator[Path | None]:
    """Yield the file that the operator wants to find before it believes in its certificate.

    Its path is fixed and the same for many operators. So one operator at a time has it, and it is
    removed again, with the folders that hold nothing else. An empty file is what a process left
    that was killed in the middle; with it, the operator would not wait for its certificate.
    """
    if not operator.asks_for:
        yield None
        return
    sign = Path(operator.asks_for)
    with locked(cache_directory(os.environ) / "operators.lock"):
        if sign.exists() and sign.stat().st_size:
            yield None
            return
        sign.unlink(missing_ok=True)
        try:
            sign.parent.mkdir(parents=True, exist_ok=True)
            yield sign
        finally:
            sign.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for folder in sign.parents[:2]:
                    folder.rmdir()


def _mount(api: Api, operator: Operator, certificates: Path, sign: Path | None) -> bool:
    """Write the certificate where the operator looks, as the kubelet does; False if there is none.

    The operator makes one at its start and waits until it is there.
    """
    secret = api.get(f"/api/v1/namespaces/{operator.namespace}/secrets/{operator.certificate}")
    data: dict[str, Any] = (secret or {}).get("data") or {}
    # The certificate last: that is what the operator looks for.
    for key in ("tls.key", "tls.crt"):
        if key in data:
            (certificates / key).write_bytes(base64.b64decode(data[key]))
    if "tls.crt" in data and sign:
        sign.touch()
    return "tls.crt" in data


def _accepts(api: Api, probes: Sequence[Json], refusals: list[str]) -> bool:
    """Return whether the API server accepts each object; what it answers otherwise goes to
    `refusals`.

    Nothing is stored. An operator is ready when it listens, and the API server may not know by then
    whom to trust.
    """
    refusals.clear()
    for probe in probes:
        kind, metadata = probe["kind"], probe["metadata"]
        where = f"namespaces/{metadata['namespace']}/" if "namespace" in metadata else ""
        path = f"/apis/{probe['apiVersion']}/{where}{kind.lower()}s?dryRun=All"
        status, answer = api.call("POST", path, probe)
        if status != http.HTTPStatus.CREATED:
            words = answer.get("message", answer) if isinstance(answer, dict) else answer
            refusals.append(f"the API server answers {status} to a {kind}: {words}")
    return not refusals
