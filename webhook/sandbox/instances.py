"""Sandboxes that outlive the command that starts them, each under a name."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from webhook.errors import SandboxError
from webhook.sandbox.api import Api
from webhook.sandbox.arguments import Layout
from webhook.sandbox.binaries import ALL, obtain_binaries, version_of
from webhook.sandbox.cache import cache_directory, locked
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.controller import start_controller
from webhook.sandbox.definition import definitions
from webhook.sandbox.modules import KUBERNETES
from webhook.sandbox.processes import alive, end_recorded, recorded
from webhook.sandbox.webhook import start_webhook

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.sandbox.nodes import Pool
    from webhook.sandbox.progress import Progress

_RECORD: Final = "sandbox.json"
# What a sandbox is said to have for policies if they are objects of its own.
_CLUSTER: Final = "the cluster"


@dataclass(frozen=True)
class ComponentStatus:
    """One process of a sandbox."""

    name: str
    version: str
    pid: int
    running: bool


@dataclass(frozen=True)
class NodeStatus:
    """One node as the API server has it; `pods` counts those bound to it that are not over."""

    name: str
    ready: bool
    zone: str
    taints: tuple[str, ...]
    pods: int


@dataclass(frozen=True)
class Status:
    """What a named sandbox is at the moment.

    state: `running`; `broken` if a process is gone or the API server does not answer; `absent`.
    """

    name: str
    state: str
    kubeconfig: str = ""
    url: str = ""
    policies: str = ""
    components: tuple[ComponentStatus, ...] = ()
    nodes: tuple[NodeStatus, ...] = field(default=())

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


def up(
    name: str,
    pools: list[Pool],
    policies: Path | None,
    progress: Progress,
    environ: Mapping[str, str] = os.environ,
    *,
    objects: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
) -> Status:
    """Start the sandbox of this name, where Runs work, and the webhook if it is given policies.

    With `objects`, paths of collections and policies for them, in their order, these are created,
    and the webhook takes its policies from there; `policies` is not looked at then. One that runs
    already stays as it is; what a broken one has left is cleared away first. Raises
    SandboxError if it cannot be started, and then leaves nothing behind, and if one runs already
    with other policies.
    """
    wanted = _CLUSTER if objects is not None else str(policies.absolute()) if policies else ""
    binaries = obtain_binaries(ALL, progress, environ)
    directory = _directory(name, environ)
    with locked(_lock(environ)):
        before = status(name, environ)
        if before.state == "running":
            if wanted and before.policies != wanted:
                raise SandboxError(
                    f"sandbox {name} runs already, with {before.policies or 'no policies'}: run"
                    f" `fairlead sandbox down --name {name}` first, or take another --name"
                )
            progress.note(f"sandbox {name} runs already")
            return before
        if before.state == "broken":
            progress.note(f"clearing away what a broken sandbox {name} has left")
            _remove(directory)
        settings = Settings(pools=pools, definitions=definitions())
        plane = ControlPlane(directory, binaries, settings, detached=True)
        try:
            with progress.step("starting the control plane", about=4):
                plane.start()
            versions = {component: version_of(path) for component, path in binaries.items()}
            if versions["kube-apiserver"] != KUBERNETES.version:
                progress.note(
                    f"kube-apiserver is {versions['kube-apiserver']}, from KUBEBUILDER_ASSETS;"
                    f" Fairlead is tested with {KUBERNETES.version}"
                )
            own = f"v{version('fairlead')}"
            options = ["--no-leader-election"]
            for collection, each in objects or ():
                plane.api.create(collection, each)
            if wanted:
                with progress.step("starting the webhook", about=2):
                    folder = policies if objects is None else None
                    webhook = start_webhook(plane, folder, options=("--nodes", "--events"))
                versions[webhook.name] = own
                if objects is not None:
                    options.append(f"--webhook-replica={urlsplit(webhook.health_url).netloc}")
            if objects is None:
                # Nobody goes by the policies that somebody may write there.
                options.append("--no-policy-status")
            with progress.step("starting the controller", about=2):
                controller = start_controller(plane, options=options)
                versions[controller.name] = own
            record = {
                "ports": plane.layout.ports,
                "policies": wanted,
                "versions": versions,
            }
            (directory / _RECORD).write_text(json.dumps(record))
            plane.api.close()
        except BaseException:
            # An interrupted start too must leave nothing behind.
            plane.stop()
            _remove(directory)
            raise
        return status(name, environ)


def down(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """End every process of the sandbox and remove its files; False if there is none."""
    directory = _directory(name, environ)
    if not directory.exists():
        return False
    with locked(_lock(environ)):
        _remove(directory)
    return True


def status(name: str, environ: Mapping[str, str] = os.environ) -> Status:
    """What the sandbox of this name is at the moment."""
    directory = _directory(name, environ)
    if not directory.exists():
        return Status(name, "absent")
    try:
        record = json.loads((directory / _RECORD).read_text())
    except (OSError, ValueError):
        # Its start was interrupted, or is still under way.
        record = {"ports": {}, "policies": "", "versions": {}}
    versions = record["versions"]
    pids = recorded(directory)
    components = tuple(
        ComponentStatus(component, versions.get(component, ""), pid, alive(pid, directory))
        for component, pid in pids.items()
    )
    whole = bool(versions) and set(versions) <= {each.name for each in components if each.running}
    layout = Layout(directory, record["ports"])
    nodes = _nodes(layout) if versions else None
    return Status(
        name=name,
        state="running" if whole and nodes is not None else "broken",
        kubeconfig=str(layout.kubeconfig),
        url=layout.url("kube-apiserver") if versions else "",
        policies=record["policies"],
        components=components,
        nodes=nodes or (),
    )


def _nodes(layout: Layout) -> tuple[NodeStatus, ...] | None:
    """Return the nodes, or None if the API server does not answer."""
    with contextlib.closing(Api(layout.ports["kube-apiserver"], layout.credentials)) as api:
        return tuple(_nodes_of(api)) if api.ready() else None


def _nodes_of(api: Api) -> Iterator[NodeStatus]:
    bound = [
        pod["spec"].get("nodeName")
        for pod in api.get("/api/v1/pods")["items"]
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]
    for node in api.get("/api/v1/nodes")["items"]:
        name = node["metadata"]["name"]
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
        yield NodeStatus(
            name=name,
            ready=conditions.get("Ready") == "True",
            zone=node["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", ""),
            taints=tuple(
                f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
                for taint in node["spec"].get("taints", ())
            ),
            pods=bound.count(name),
        )


def _directory(name: str, environ: Mapping[str, str]) -> Path:
    return cache_directory(environ) / "sandboxes" / name


def _lock(environ: Mapping[str, str]) -> Path:
    return cache_directory(environ) / "sandbox.lock"


def _remove(directory: Path) -> None:
    if directory.exists():
        end_recorded(directory)
        shutil.rmtree(directory)
    # The folder of all sandboxes goes with the last of them.
    with contextlib.suppress(OSError):
        directory.parent.rmdir()
