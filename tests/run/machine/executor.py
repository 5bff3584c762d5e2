"""Carries out one action on the model's API server, as webhook.controller does on the real one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from tests.run.machine.caches import Caches
from tests.run.machine.server import Refused, Server
from tests.run.machine.things import Pod, RunThing, Thing, WorkloadThing
from webhook.run import actions as act
from webhook.run.actions import CreatePod


@dataclass
class Executor:
    """What the server answers is seen at once."""

    server: Server
    caches: Caches
    # Uids of Workloads that it has deleted, of which it may hear late.
    deleted: set[str] = field(default_factory=set)
    # Uids of Workloads for which it has tried the pods.
    tried: set[str] = field(default_factory=set)

    def do(self, thing: RunThing, action: act.Action) -> None:
        """Do it. Raises Refused where a creation is refused; other answers of no are success."""
        match action:
            case act.CreatePod():
                self._create_pod(thing, action)
            case act.DeletePod(pod, uid):
                self._delete_pod(pod, uid)
            case act.ForceDeletePod(pod, uid):
                self._delete_pod(pod, uid, force=True)
            case act.DeleteRun():
                self._delete_run(thing)
            case act.CreateService(closed):
                self._create("services", thing, closed=closed)
            case act.CreateConfigMap():
                self._create("configmaps", thing)
            case act.CreateKeys():
                self._create("secrets", thing)
            case act.RestoreKeys():
                with suppress(Refused):
                    self._create("secrets", thing)
            case act.CreateDeployment():
                self._create("deployments", thing)
            case _:
                self._change(thing, action)

    def _change(self, thing: RunThing, action: act.Action) -> None:
        match action:
            case act.OpenService() if self._own("services", thing):
                opened = self.server.change("services", thing.name, closed=False)
                self.caches.answered("services", opened)
            case act.ScaleDeployment(replicas):
                self._scale(thing, replicas)
            case act.DeleteDeployment() if self._own("deployments", thing):
                self.server.remove("deployments", thing.name)
            case act.CheckWorkload(_, uid):
                self.tried.add(uid)
            case act.CreateWorkload() | act.DeleteWorkload() | act.WriteWorkload():
                self._queue(thing, action)

    def _queue(self, thing: RunThing, action: act.Action) -> None:
        there = self.server.workloads.get(thing.name)
        mine = there is not None and there.run_uid == thing.uid
        match action:
            case act.CreateWorkload(queue) if not mine:
                made = WorkloadThing(thing.name, thing.uid, queue)
                self.caches.answered("workloads", self.server.create("workloads", made))
            case act.DeleteWorkload(name, uid) if there and there.uid == uid:
                self.server.remove("workloads", name)
                self.deleted.add(uid)
            case act.WriteWorkload(name, uid, version, updates) if there and (
                there.uid,
                str(there.version),
            ) == (uid, version):
                new = {each["type"]: (each["status"] == "True", each["reason"]) for each in updates}
                said = there.reported(new, self.server.now)
                changed = self.server.change("workloads", name, **said)
                self.caches.answered("workloads", changed)

    def _create_pod(self, thing: RunThing, action: CreatePod) -> None:
        name = pod_name(thing, action)
        pod = Pod(
            name=name,
            run=thing.name,
            run_uid=thing.uid,
            role=action.role,
            index=action.index,
            attempt=action.attempt,
            number=action.attempt + action.restarts,
            history=action.history,
            avoid=action.avoid,
            created=self.server.now,
        )
        try:
            made = self.server.create("pods", pod)
        except Refused as refused:
            there = self.server.pods.get(name)
            if refused.reason != "AlreadyExists" or there is None or there.run_uid != thing.uid:
                raise
            made = there
        self.caches.answered("pods", made)

    def _delete_pod(self, name: str, uid: str, *, force: bool = False) -> None:
        try:
            left = self.server.delete_pod(name, uid, "controller", force=force)
        except Refused:
            return
        if left is not None:
            self.caches.answered("pods", left)

    def _create(self, kind: str, thing: RunThing, *, closed: bool = False) -> None:
        if kind == "secrets" and self._own(kind, thing):
            return
        try:
            made = self.server.create(kind, Thing(thing.name, thing.uid, closed=closed))
        except Refused:
            if not self._own(kind, thing):
                raise
            made = self.server.stored[kind][thing.name]
        if kind != "secrets":
            self.caches.answered(kind, made)

    def _scale(self, thing: RunThing, replicas: int) -> None:
        there = self.server.stored["deployments"].get(thing.name)
        if there is not None and there.run_uid == thing.uid:
            fields = {"replicas": replicas, "generation": there.generation + 1}
            self.caches.answered(
                "deployments", self.server.change("deployments", thing.name, **fields)
            )

    def _delete_run(self, thing: RunThing) -> None:
        try:
            self.server.delete_run(thing.name, thing.uid)
        except Refused:
            return

    def _own(self, kind: str, thing: RunThing) -> bool:
        there = self.server.stored[kind].get(thing.name)
        return there is not None and there.run_uid == thing.uid


def pod_name(thing: RunThing, action: act.Action) -> str:
    """The name of the pod that an action makes; empty if it makes none."""
    if isinstance(action, act.CreatePod):
        return f"{thing.name}-{action.role}-{action.index}"
    return ""
