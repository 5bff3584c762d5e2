"""A running Kubernetes control plane on this machine."""

from __future__ import annotations

import contextlib
import datetime
import json
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from webhook import names
from webhook.errors import SandboxError
from webhook.sandbox.api import (
    Api,
    accounts_ready,
    install_definitions,
    is_ready,
    nodes_ready,
    wait_until,
)
from webhook.sandbox.binaries import ALL
from webhook.sandbox.component_flags import PORTS, Layout, component_arguments
from webhook.sandbox.credentials import write_credentials, write_kubeconfig
from webhook.sandbox.processes import Lifeline, Process, end_recorded, free_ports
from webhook.sandbox.simulated_nodes import node_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from webhook.sandbox.simulated_nodes import Pool

_AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    resources: [{group: "", resources: [pods]}]
  - level: None
"""


@dataclass(frozen=True)
class Settings:
    """The parts of a control plane.

    components: which of binaries.ALL run; etcd and kube-apiserver always run.
    pools: the nodes; created only if kwok runs, which simulates them.
    extra_arguments: flags by component, which override the usual ones.
    audit: whether the API server writes an audit log of requests for pods.
    definitions: CustomResourceDefinitions that exist before the controller manager starts. Its
        garbage collector notices later ones after up to 30 s, and until then does not delete the
        objects that such objects own.
    """

    components: Sequence[str] = ALL
    pools: Sequence[Pool] = ()
    extra_arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    audit: bool = False
    definitions: Sequence[Mapping[str, Any]] = ()


class ControlPlane:
    """etcd, an API server and what else the settings name, on 127.0.0.1 and ports found free.

    As a context manager it starts and stops itself. All state lies in `directory`, which is made,
    and removed again by stop(). Unless `detached`, all processes die with this one.
    """

    def __init__(
        self,
        directory: Path,
        binaries: Mapping[str, Path],
        settings: Settings,
        *,
        detached: bool = False,
    ) -> None:
        self.settings = settings
        self.layout = Layout(directory, free_ports(PORTS))
        self._binaries = binaries
        self._lifeline = None if detached else Lifeline()
        self._processes: dict[str, Process] = {}
        self._api: Api | None = None

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, in the control plane's directory."""
        return self.layout.kubeconfig

    @property
    def url(self) -> str:
        """The API server's address."""
        return self.layout.url("kube-apiserver")

    @property
    def pids(self) -> dict[str, int]:
        """The process id of every component that runs."""
        return {name: process.pid for name, process in self._processes.items()}

    @property
    def api(self) -> Api:
        """Plain calls as the administrator. Raises SandboxError before start()."""
        if self._api is None:
            raise SandboxError("the control plane has not been started: call start() first")
        return self._api

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, patience: float = 120) -> None:
        """Start everything, and return when pods can be created, scheduled and run.

        Raises SandboxError, with the end of its log, if a component exits, and if not everything
        is ready within `patience` seconds. The caller stops what was started.
        """
        layout = self.layout
        layout.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_credentials(layout.credentials, datetime.datetime.now(datetime.UTC))
        write_kubeconfig(layout.kubeconfig, self.url, layout.credentials, "admin")
        programs = (names.CONTROLLER, names.WEBHOOK)
        for name in ("kube-controller-manager", "kube-scheduler", "kwok", *programs):
            write_kubeconfig(layout.kubeconfig_of(name), self.url, layout.credentials, name)
        layout.audit_policy.write_text(_AUDIT_POLICY)
        deadline = time.monotonic() + patience
        api = self._api = Api(self.layout.ports["kube-apiserver"], self.layout.credentials)
        for name in ("etcd", "kube-apiserver"):
            self.start_component(name)
        # Asked first, because an API server without etcd only reports that it is not ready.
        self._wait("etcd", lambda: is_ready(self.layout.ports["etcd"]), deadline)
        self._wait("kube-apiserver", api.ready, deadline)
        install_definitions(api, self.settings.definitions)

        others = [name for name in self.settings.components if name not in self._processes]
        for name in others:
            self.start_component(name)
        nodes = node_manifests(list(self.settings.pools)) if "kwok" in others else []
        for node in nodes:
            api.create("/api/v1/nodes", node)

        if "kube-scheduler" in others:
            scheduler = Api(self.layout.ports["kube-scheduler"], self.layout.credentials)
            with contextlib.closing(scheduler):
                self._wait("kube-scheduler", scheduler.ready, deadline)
        if "kube-controller-manager" in others:
            self._wait("service accounts", lambda: accounts_ready(api, "default"), deadline)
            # Its controllers remove the taint of new nodes.
            self._wait("nodes", lambda: nodes_ready(api, len(nodes)), deadline)

    def stop(self) -> None:
        """End every process and remove the directory. Safe to call at any time, and twice."""
        if self._api:
            self._api.close()
        for process in self._processes.values():
            process.stop()
        self._processes.clear()
        if self._lifeline:
            self._lifeline.cut()
        if self.layout.directory.exists():
            end_recorded(self.layout.directory)
            shutil.rmtree(self.layout.directory)

    def start_component(self, name: str) -> None:
        """Start one component, or start it again after stop_component; does not wait for it."""
        arguments = component_arguments(
            name, self.layout, self.settings.components, audit=self.settings.audit
        )
        self.start_process(
            name, [self._binaries[name], *arguments, *self.settings.extra_arguments.get(name, ())]
        )

    def stop_component(self, name: str) -> None:
        """Kill one component, as a crash would."""
        self._processes.pop(name).stop()

    def start_process(
        self,
        name: str,
        arguments: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a process beside the components, such as a webhook; it ends with them.

        One of the arguments has to name the control plane's directory.
        """
        group = self._lifeline.group if self._lifeline else None
        process = Process(name, arguments, self.layout.directory, group, environment)
        self._processes[name] = process
        return process

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace, and wait until pods can be created in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.api.create("/api/v1/namespaces", {"metadata": metadata})
        if "kube-controller-manager" in self._processes:
            deadline = time.monotonic() + 30
            self._wait("service accounts", lambda: accounts_ready(self.api, name), deadline)

    def wait_for_api_server(self) -> None:
        """Return when the API server is ready. Raises SandboxError after a minute."""
        self._wait("kube-apiserver", self.api.ready, time.monotonic() + 60)

    def audit_events(self, namespace: str) -> list[dict[str, Any]]:
        """Return the audit.k8s.io/v1 Events so far about pods of the namespace, oldest first.

        Empty without the setting `audit`.
        """
        if not self.layout.audit_log.exists():
            return []
        lines = self.layout.audit_log.read_text().splitlines(keepends=True)
        # The last line may be incomplete.
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["objectRef"].get("namespace") == namespace]

    def _wait(self, what: str, ready: Callable[[], bool], deadline: float) -> None:
        def check() -> None:
            for process in self._processes.values():
                process.check()

        wait_until(what, ready, check, deadline)
