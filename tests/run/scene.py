"""A run that is looked at again and again: what is decided is done at once, and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.run.runs import UID, a_run, containers, spec_of
from webhook.backoff import Delays
from webhook.run.actions import (
    Action,
    Announcement,
    CreateConfigMap,
    CreateDeployment,
    CreatePod,
    CreateService,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    ForceDeletePod,
    Outcome,
    ScaleDeployment,
)
from webhook.run.model import Condition, RoleStatus, RunStatus
from webhook.run.model.intervals import format_intervals
from webhook.run.observed import (
    Exit,
    Needs,
    NodeHealth,
    Observed,
    OwnedDeployment,
    OwnedPod,
)
from webhook.run.reconcile import reconcile
from webhook.run.restarts import RestartTerms
from webhook.times import to_second

# The waits of a scene, whatever the product's are.
DELAYS = Delays(first=10.0, longest=360.0)
BEGIN = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)


class Scene:
    """A run called mnist, its pods by role and index ("worker-0"), and the time.

    did, told: every action and every Event so far. gone: whether the Run was deleted.

    Failures are charged at once unless an incident_window is given. live: nodes as a live read has
    them, where that differs from what was heard. off: nodes without a kubelet, whose pods hang when
    they are deleted. held: no pod is deleted for now. given_up: what the webhook writes of classes
    that new pods do not require.
    """

    def __init__(
        self,
        needs: Needs | None = None,
        *,
        restart_delays: Delays = DELAYS,
        incident_window: float = 0.0,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        whole = {"template": spec_of(containers("main")), **spec}
        self.run = a_run("mnist", whole)
        self.annotate(annotations)
        self.needs = needs or Needs()
        self.terms = RestartTerms(restart_delays, incident_window)
        self.live: dict[str, NodeHealth] = {}
        self.off: set[str] = set()
        self.held = False
        self.given_up: tuple[tuple[str, str], ...] = ()
        self.observed = Observed()
        self.uncreated: set[str] = set()
        self.now = BEGIN
        self.did: list[Action] = []
        self.told: list[Announcement] = []
        self.after: float | None = None
        self.gone = False
        self.look()

    @property
    def status(self) -> RunStatus:
        return self.run.status

    @property
    def pods(self) -> list[str]:
        return sorted(name.removeprefix("mnist-") for name in self.observed.pods)

    def pod(self, name: str) -> OwnedPod:
        return self.observed.pods[f"mnist-{name}"]

    def role(self, name: str) -> RoleStatus:
        return self.status.replicas[name]

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == kind), None)

    def spec(self, **fields: Any) -> Scene:
        """The Run is edited."""
        spec = self.run.spec.model_copy(update=fields)
        generation = self.run.metadata.generation + 1
        metadata = self.run.metadata.model_copy(update={"generation": generation})
        self.run = self.run.model_copy(update={"spec": spec, "metadata": metadata})
        return self.look()

    def annotate(self, annotations: Mapping[str, str] | None) -> None:
        """The Run's own annotations are changed, which is no edit of its spec."""
        metadata = self.run.metadata.model_copy(update={"annotations": annotations})
        self.run = self.run.model_copy(update={"metadata": metadata})

    def later(self, seconds: float) -> Scene:
        """Time goes by."""
        self.now += timedelta(seconds=seconds)
        return self.look()

    def node(self, name: str, **fields: Any) -> Scene:
        """A node is heard of; gone, if nothing is said of it."""
        health = NodeHealth(name, **({"uid": f"uid-{name}", **fields} if fields else {}))
        nodes = {**(self.observed.nodes or {}), name: health}
        self.observed = replace(self.observed, nodes=nodes)
        return self.look()

    def runs_on(self, **nodes: str) -> Scene:
        """Pods run on nodes of their own: runs_on(worker_0="spot-0")."""
        for name, node in nodes.items():
            self.node(node, ready="True")
            since = to_second(self.now)
            at = name.replace("_", "-")
            self.set(at, phase="Running", ready=True, node=node, running_since=since)
        return self.look()

    def runs(self, *names: str) -> Scene:
        """Pods run and are ready; all that are there if none is named."""
        for name in names or self.pods:
            since = to_second(self.now)
            self.set(name, phase="Running", ready=True, node="node-a", running_since=since)
        return self.look()

    def exits(self, name: str, code: int, reason: str = "", message: str = "") -> Scene:
        """A pod's main container ends."""
        reason = reason or ("Error" if code else "Completed")
        exit_ = Exit("main", code, 0, reason, message, to_second(self.now))
        self.set(name, phase="Failed" if code else "Succeeded", ready=False, exit=exit_)
        return self.look()

    def fails(self, name: str, **fields: Any) -> Scene:
        """A pod fails in some other way."""
        self.set(name, phase="Failed", ready=False, **fields)
        return self.look()

    def vanishes(self, name: str) -> Scene:
        """A pod is gone, and nobody saw why."""
        self._without(f"mnist-{name}")
        return self.look()

    def goes(self, name: str, **last: Any) -> Scene:
        """A pod is gone, and its last state was seen."""
        self.observed = replace(self.observed, gone=(replace(self.pod(name), **last),))
        return self.vanishes(name)

    def unseen(self, role: str, index: int) -> Scene:
        """The controller died before it saw a pod, which is gone by now; another one goes on."""
        others = format_intervals(set(range(self.run.spec.roles[role].count)) - {index})
        changed = {"creating_indexes": str(index), "active_indexes": others}
        roles = {**self.status.replicas, role: self.role(role).model_copy(update=changed)}
        status = self.status.model_copy(update={"replicas": roles})
        self.run = self.run.model_copy(update={"status": status})
        self.uncreated.clear()
        return self.vanishes(f"{role}-{index}")

    def set(self, name: str, **fields: Any) -> None:
        """Change a pod, and do not look yet."""
        pod = replace(self.pod(name), **fields)
        self.observed = replace(self.observed, pods={**self.observed.pods, pod.name: pod})

    def look(self) -> Scene:
        """Look until nothing is left to do."""
        for _ in range(20):
            if self.gone or not self._once():
                return self
        raise AssertionError("there is always more to do")

    def _reconcile(self, observed: Observed) -> Outcome:
        return reconcile(self.run, self.needs, observed, self.now, self.terms)

    def _once(self) -> bool:
        self.observed = replace(self.observed, uncreated=frozenset(self.uncreated))
        outcome = self._reconcile(self.observed)
        if outcome.look_up or outcome.look_up_nodes:
            read = {
                name: self.live.get(name)
                or (self.observed.nodes or {}).get(name)
                or NodeHealth(name)
                for name in outcome.look_up_nodes
            }
            looked_up = replace(
                self.observed,
                absent=outcome.look_up,
                nodes=None if self.observed.nodes is None else {**self.observed.nodes, **read},
                nodes_read=frozenset(read),
            )
            outcome = self._reconcile(looked_up)
        assert not outcome.look_up
        assert not outcome.look_up_nodes
        for action in outcome.actions:
            self._do(action)
        self.did += outcome.actions
        changed = outcome.status != self.status
        assert changed or not outcome.announcements
        self.told += outcome.announcements
        status = RunStatus.model_validate_json(outcome.status.model_dump_json(by_alias=True))
        assert status == outcome.status
        self.run = self.run.model_copy(update={"status": status})
        self.after = outcome.after
        self.uncreated |= outcome.planned
        self.observed = replace(self.observed, gone=())
        return changed or (bool(outcome.actions) and not self.held)

    def _do(self, action: Action) -> None:
        match action:
            case CreatePod(role, index, attempt):
                name = self.run.pod_name(role, index)
                assert name not in self.observed.pods
                self.uncreated.remove(name)
                uid = f"uid-{len(self.did)}-{name}"
                pod = OwnedPod(name, uid, UID, role, index, attempt, "Pending")
                pod = replace(pod, given_up=self.given_up)
                self.observed = replace(self.observed, pods={**self.observed.pods, name: pod})
            case DeletePod() | ForceDeletePod() if self.held:
                pass
            case DeletePod(name, uid) | ForceDeletePod(name, uid):
                pod = self.observed.pods[name]
                assert pod.uid == uid
                if pod.node in self.off and isinstance(action, DeletePod):
                    self.set(name.removeprefix("mnist-"), deleted_at=to_second(self.now))
                else:
                    self._without(name)
            case CreateService():
                self.observed = replace(self.observed, service=True)
            case CreateConfigMap():
                self.observed = replace(self.observed, config_map=True)
            case CreateDeployment():
                self._deployment(OwnedDeployment("uid", 1, 1, 0, 0, 0))
            case ScaleDeployment(replicas):
                there = self.observed.deployment
                assert there is not None
                self._deployment(there._replace(replicas=replicas, ready=0, available=0))
            case DeleteDeployment():
                self._deployment(None)
            case DeleteRun():
                self.gone = True

    def _deployment(self, deployment: OwnedDeployment | None) -> None:
        self.observed = replace(self.observed, deployment=deployment)

    def _without(self, name: str) -> None:
        left = {key: pod for key, pod in self.observed.pods.items() if key != name}
        self.observed = replace(self.observed, pods=left)


def workers(count: int, **fields: Any) -> dict[str, Any]:
    """The spec of a JAX run of so many workers."""
    return {"framework": "jax", "replicas": {"worker": {"count": count, **fields}}}


def led(framework: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    """The spec of a run of one master and so many workers."""
    replicas = {"master": {"count": 1}, "worker": {"count": count, **fields}}
    return {"framework": framework, "replicas": replicas}
