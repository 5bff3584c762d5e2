"""Named sandboxes that outlive the command that starts them."""

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
from webhook.names import TERMINAL_PHASES
from webhook.sandbox.api import Api, definitions, has_condition
from webhook.sandbox.binaries import ALL, KUBERNETES, obtain_binaries, version_of
from webhook.sandbox.cache_folder import cache_directory, locked
from webhook.sandbox.component_flags import Layout
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.credentials import ADMIN_TOKEN
from webhook.sandbox.fairlead import start_controller, start_webhook
from webhook.sandbox.operators.build import obtain_operators
from webhook.sandbox.operators.install import plan_installations, start_operators
from webhook.sandbox.operators.table import interception_sources
from webhook.sandbox.processes import alive, end_recorded, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.progress import Progress
    from webhook.sandbox.operators.table import Operator
    from webhook.sandbox.simulated_nodes import Pool

_RECORD: Final = "sandbox.json"
# The source of policies in the record of a sandbox whose policies are its own objects.
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
    """One node from the API server; `pods` counts the pods bound to it that have not ended."""

    name: str
    ready: bool
    zone: str
    taints: tuple[str, ...]
    pods: int


@dataclass(frozen=True)
class Status:
    """The current state of a named sandbox.

    state: `running`; `broken` if a process is gone or the API server does not answer; `absent`.
    """

    name: str
    state: str
    kubeconfig: str = ""
    url: str = ""
    policies: str = ""
    operators: tuple[str, ...] = ()
    components: tuple[ComponentStatus, ...] = ()
    nodes: tuple[NodeStatus, ...] = field(default=())

    def document(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return asdict(self)


def up(
    name: str,
    pools: list[Pool],
    policies: Path | None,
    progress: Progress,
    *,
    objects: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
    operators: Sequence[Operator] = (),
) -> Status:
    """Start the sandbox of this name with the controller, and with the webhook if it has policies.

    `objects` are policies with the paths of their collections. They are created in this order, the
    webhook reads its policies from the cluster, and `policies` is ignored. `operators` are started
    in this order, and the webhook also gets the pods that their sources mark. A running sandbox is
    not changed; a broken one is removed first. Raises SandboxError if it cannot be started, and
    then leaves nothing behind, or if it runs already with other policies or lacks an operator.
    """
    wanted = _CLUSTER if objects is not None else str(policies.absolute()) if policies else ""
    binaries = obtain_binaries(ALL, progress)
    built = obtain_operators(operators, progress)
    directory = _directory(name)
    with locked(_lock()):
        before = status(name)
        if before.state == "running":
            if wanted and before.policies != wanted:
                raise SandboxError(
                    f"sandbox {name} runs already, with {before.policies or 'no policies'}: run"
                    f" `fairlead sandbox down --name {name}` first, or take another --name"
                )
            if lacking := [
                operator.name for operator in operators if operator.name not in before.operators
            ]:
                raise SandboxError(
                    f"sandbox {name} runs already, without operator {', '.join(lacking)}: run"
                    f" `fairlead sandbox down --name {name}` first, or take another --name"
                )
            progress.note(f"sandbox {name} runs already")
            return before
        if before.state == "broken":
            progress.note(f"clearing away what a broken sandbox {name} has left")
            _remove(directory)
        planned = plan_installations(operators, built)
        kinds = [definition for installation in planned for definition in installation.definitions]
        settings = Settings(
            pools=pools,
            definitions=[*definitions(), *kinds],
            # As on GKE, whose nodes the shipped pools have: pods that request GPUs tolerate the
            # taint of that name.
            extra_arguments={
                "kube-apiserver": ["--enable-admission-plugins=ExtendedResourceToleration"]
            },
        )
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
            start_operators(plane, planned, progress)
            versions |= {operator_name: built[operator_name].version for operator_name in built}
            fairlead_version = f"v{version('fairlead')}"
            options = ["--no-leader-election"]
            for collection, manifest in objects or ():
                plane.api.create(collection, manifest)
            if wanted:
                with progress.step("starting the webhook", about=2):
                    folder = policies if objects is None else None
                    webhook = start_webhook(
                        plane,
                        folder,
                        sources=interception_sources(operators),
                        options=("--nodes", "--events"),
                    )
                versions[webhook.name] = fairlead_version
                if objects is not None:
                    options.append(f"--webhook-replica={urlsplit(webhook.health_url).netloc}")
            if objects is None:
                # The webhook does not use policies that are written there.
                options.append("--no-policy-status")
            with progress.step("starting the controller", about=2):
                backends = sorted({operator.backend for operator in operators if operator.backend})
                controller = start_controller(plane, options=options, backends=backends)
                versions[controller.name] = fairlead_version
            record = {
                "ports": plane.layout.ports,
                "policies": wanted,
                "operators": [operator.name for operator in operators],
                "versions": versions,
            }
            (directory / _RECORD).write_text(json.dumps(record))
            plane.api.close()
        except BaseException:
            # An interrupted start must leave nothing behind either.
            plane.stop()
            _remove(directory)
            raise
        return status(name)


def down(name: str) -> bool:
    """End every process of the sandbox and remove its files; False if there is none."""
    directory = _directory(name)
    if not directory.exists():
        return False
    with locked(_lock()):
        _remove(directory)
    return True


def status(name: str) -> Status:
    """Return the current state of the sandbox of this name."""
    directory = _directory(name)
    if not directory.exists():
        return Status(name, "absent")
    try:
        record = json.loads((directory / _RECORD).read_text())
    except (OSError, ValueError):
        # Its start was interrupted, or has not ended.
        record = {"ports": {}, "policies": "", "versions": {}}
    versions = record["versions"]
    pids = recorded(directory)
    components = tuple(
        ComponentStatus(component, versions.get(component, ""), pid, alive(pid, directory))
        for component, pid in pids.items()
    )
    whole = bool(versions) and set(versions) <= {
        component.name for component in components if component.running
    }
    layout = Layout(directory, record["ports"])
    nodes = _nodes(layout) if versions else None
    return Status(
        name=name,
        state="running" if whole and nodes is not None else "broken",
        kubeconfig=str(layout.kubeconfig),
        url=layout.url("kube-apiserver") if versions else "",
        policies=record["policies"],
        operators=tuple(record.get("operators", ())),
        components=components,
        nodes=nodes or (),
    )


def names() -> list[str]:
    """Return the names of all sandboxes."""
    folder = _directory("x").parent
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _nodes(layout: Layout) -> tuple[NodeStatus, ...] | None:
    """Return the nodes, or None if the API server does not answer."""
    if not (layout.credentials / ADMIN_TOKEN).exists():
        # A sandbox of an older version: broken, so that `up` replaces it.
        return None
    with contextlib.closing(Api(layout.ports["kube-apiserver"], layout.credentials)) as api:
        return tuple(_nodes_of(api)) if api.ready() else None


def _nodes_of(api: Api) -> Iterator[NodeStatus]:
    bound = [
        pod["spec"].get("nodeName")
        for pod in api.get("/api/v1/pods")["items"]
        if pod["status"].get("phase") not in TERMINAL_PHASES
    ]
    for node in api.get("/api/v1/nodes")["items"]:
        name = node["metadata"]["name"]
        yield NodeStatus(
            name=name,
            ready=has_condition(node),
            zone=node["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", ""),
            taints=tuple(
                f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
                for taint in node["spec"].get("taints", ())
            ),
            pods=bound.count(name),
        )


def _directory(name: str) -> Path:
    return cache_directory(os.environ) / "sandboxes" / name


def _lock() -> Path:
    return cache_directory(os.environ) / "sandbox.lock"


def _remove(directory: Path) -> None:
    if directory.exists():
        end_recorded(directory)
        shutil.rmtree(directory)
    # The last sandbox also removes the folder of all sandboxes.
    with contextlib.suppress(OSError):
        directory.parent.rmdir()
