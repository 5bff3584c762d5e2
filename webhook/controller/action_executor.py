"""Carry out the actions that reconciling decided."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from secrets import token_hex
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from webhook.controller.owned_objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    SECRET,
    SERVICE,
    Kind,
)
from webhook.controller.refusals import NAME_TAKEN, is_certain
from webhook.errors import ClusterError, NotLeading
from webhook.run.actions import (
    CheckWorkload,
    CreateConfigMap,
    CreateDeployment,
    CreateKeys,
    CreatePod,
    CreateService,
    CreateWorkload,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    DeleteWorkload,
    ForceDeletePod,
    OpenService,
    RestoreKeys,
    ScaleDeployment,
    WriteWorkload,
)
from webhook.run.manifests import secret_name
from webhook.run.observed import Refusal
from webhook.run.queue import QUEUE_UNKNOWN
from webhook.run.queue_workload import (
    pod_set_of,
    sets_of_replicas,
    updated,
    workload_name,
)
from webhook.turns import Window

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from webhook.controller.owned_objects import Objects
    from webhook.controller.pod_memory import PodMemory
    from webhook.controller.refusals import Refusals
    from webhook.controller.workload_executor import WorkloadExecutor
    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import Action
    from webhook.run.model import Run
    from webhook.run.observed import Observed
    from webhook.run.plan import Plan
    from webhook.run.queue_state import Queueing

A = TypeVar("A")

# Pods of one run that are created or deleted concurrently: the limit of the writer.
CONCURRENT_PODS: Final = 32
# Pods of one run to create or delete in one reconcile while runs of other namespaces wait.
WHILE_OTHERS_WAIT: Final = 50


class Counts(Protocol):
    """A sink for metrics."""

    def pod_created(self) -> None:
        """Count a pod that was created, or that existed already."""

    def pod_deleted(self) -> None:
        """Count a pod that was deleted."""

    def creation_refused(self, reason: str) -> None:
        """Count a rejected creation, by reason."""


@dataclass(slots=True)
class Done:
    """The results of the actions.

    made, refused: creations by name, and those that the API server rejected.
    left: seconds until delayed creations may continue; None if none were delayed.
    error: the first API server error; no action is started after it.
    failed: which write to an engine failed by it, and why; empty if a retry may resolve it at once.
    acted: True if anything was created or deleted.
    cut: True if actions remain because runs of other namespaces wait.
    ssh_secret: the Secret of SSH keys, if it was created, for the status.
    """

    made: set[str] = field(default_factory=set)
    refused: list[Refusal] = field(default_factory=list)
    left: float | None = None
    error: ClusterError | NotLeading | None = None
    failed: str = ""
    acted: bool = False
    cut: bool = False
    ssh_secret: str | None = None

    def wait(self, seconds: float) -> None:
        """Record that a creation is delayed for this many seconds."""
        self.left = seconds if self.left is None else min(self.left, seconds)


class ActionExecutor:
    """Carry out the actions of each run; one object serves all runs.

    others_wait: returns True if runs of other namespaces wait in the queue.
    """

    def __init__(
        self,
        objects: Objects,
        refusals: Refusals,
        memory: PodMemory,
        counts: Counts,
        workloads: WorkloadExecutor,
        *,
        others_wait: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._objects = objects
        self._refusals = refusals
        self._memory = memory
        self._counts = counts
        self.workloads = workloads
        self._others_wait = others_wait

    async def carry_out(
        self, run: Run, plan: Plan | None, observed: Observed, actions: Sequence[Action]
    ) -> Done:
        """Carry out all actions, creations of pods last. API errors are returned in Done.error.

        If `plan` is None because the run has finished, nothing is created.
        """
        done = Done()
        deletions = [action for action in actions if isinstance(action, DeletePod | ForceDeletePod)]
        await self._side_by_side(
            run, deletions, lambda deletion: self._delete_pod(run, deletion), done
        )
        pods = [action for action in actions if isinstance(action, CreatePod)]
        try:
            for action in actions:
                if not done.error:
                    await self._one(run, plan, observed, action, done)
            workload = observed.queue.workload
            if plan and workload and await self.workloads.leaves_for(run, plan, workload, pods):
                done.cut = True
            # The objects that the run's pods depend on exist before the first pod.
            if plan and not (done.error or done.refused or done.cut) and done.left is None:
                await self._create_pods(run, plan, observed.queue, pods, done)
        except (ClusterError, NotLeading) as error:
            done.error = error
        return done

    async def _one(
        self, run: Run, plan: Plan | None, observed: Observed, action: Action, done: Done
    ) -> None:
        """Carry out one action, unless it is about a pod."""
        match action:
            case ScaleDeployment(replicas) if observed.deployment is not None:
                await self._objects.scale(run, observed.deployment.uid, replicas)
            case DeleteDeployment() if observed.deployment is not None:
                uid = observed.deployment.uid
                await self._objects.delete(DEPLOYMENT, run.namespace, run.name, uid=uid)
            case DeleteRun():
                await self._objects.delete_run(run)
            case OpenService():
                await self._objects.open_service(run, observed.service_uid)
            case RestoreKeys() if plan is not None:
                name = secret_name(run)
                manifest = plan.keys_secret_manifest(name, *new_key_pair())
                await self._objects.create(SECRET, run, manifest)
            case CreateKeys() if plan is not None:
                await self._create_keys(run, plan, done)
            case CreateWorkload() | CheckWorkload() if (
                pause := self._refusals.pause(run.metadata.uid, "")
            ) > 0:
                done.wait(pause)
            case CreateWorkload() | CheckWorkload() | DeleteWorkload() | WriteWorkload():
                self._note(
                    await self.workloads.carry_out(run, plan, action),
                    workload_name(run.name, run.metadata.uid),
                    done,
                )
                # Its result is in no object, and no watch tells of it.
                done.cut = done.cut or isinstance(action, CheckWorkload)
            case _ if plan is not None:
                for kind, manifest in _beside_pods(plan, action):
                    await self._create(kind, run, manifest, done)

    async def _create_keys(self, run: Run, plan: Plan, done: Done) -> None:
        """Create a Secret of a name that nobody could know, unless creations are delayed."""
        prefix = f"{run.name}-ssh-"
        if (pause := self._refusals.pause(run.metadata.uid, prefix)) > 0:
            done.wait(pause)
            return
        name = f"{prefix}{token_hex(4)}"
        manifest = plan.keys_secret_manifest(name, *new_key_pair())
        refused = await self._objects.create(SECRET, run, manifest)
        if refused:
            # The next attempt has another name, and is not another refusal.
            message = refused.message.replace(name, prefix)
            refused = Refusal(prefix, refused.reason, message)
        else:
            done.ssh_secret = name
        self._note(refused, prefix, done)

    async def _create(self, kind: Kind, run: Run, manifest: JsonObject, done: Done) -> None:
        """Create one object, unless creations are delayed or an earlier one was rejected."""
        name: str = manifest["metadata"]["name"]
        if (pause := self._refusals.pause(run.metadata.uid, name)) > 0:
            done.wait(pause)
        if not done.refused and done.left is None:
            self._note(await self._objects.create(kind, run, manifest), name, done)

    async def _create_pods(
        self,
        run: Run,
        plan: Plan,
        queue: Queueing,
        actions: Sequence[CreatePod],
        done: Done,
    ) -> None:
        free, uid = [], run.metadata.uid
        for action in actions:
            name = run.pod_name(action.role, action.index)
            if (pause := self._refusals.pause(uid, name)) > 0:
                done.wait(pause)
            else:
                free.append(action)

        workload = queue.workload
        sets = sets_of_replicas(workload) if workload and free else {}
        if elsewhere := await self.workloads.refuse_elsewhere(run, plan, queue, free, sets):
            self._note(elsewhere, elsewhere.name, done)
            return

        async def create(action: CreatePod) -> bool:
            manifest = plan.pod(
                action.role,
                action.index,
                action.attempt,
                action.history,
                action.avoid,
                action.restarts,
            )
            update = queue.updates.get(pod_set_of(workload, sets, action.role, action.index))
            name = manifest["metadata"]["name"]
            if queue.withheld:
                self._note(Refusal(name, QUEUE_UNKNOWN, queue.withheld), name, done)
                return False
            self._memory.sent(uid, name)
            try:
                refused = await self._objects.create(POD, run, updated(manifest, update))
            except ClusterError as error:
                # Not found: a pod of the name was there, and gone when it was read.
                if is_certain(error) and error.status != HTTPStatus.NOT_FOUND:
                    self._memory.plan(uid, (name,))
                raise
            self._note(refused, name, done)
            if refused is not None and refused.certain:
                self._memory.plan(uid, (name,))
            elif refused is None:
                self._counts.pod_created()
            # Any other refusal would apply to the next pod too.
            return refused is None or refused.reason == NAME_TAKEN

        await self._side_by_side(run, free, create, done)

    def _note(self, refused: Refusal | None, name: str, done: Done) -> None:
        if refused is None:
            done.made.add(name)
            done.acted = True
        else:
            done.refused.append(refused)
            self._counts.creation_refused(refused.reason)

    async def _delete_pod(self, run: Run, action: DeletePod | ForceDeletePod) -> bool:
        force = isinstance(action, ForceDeletePod)
        if await self._objects.delete(POD, run.namespace, action.name, uid=action.uid, force=force):
            self._counts.pod_deleted()
        return True

    async def _side_by_side(
        self, run: Run, actions: Sequence[A], do: Callable[[A], Awaitable[bool]], done: Done
    ) -> None:
        """Start with one action, then run two, then four concurrently, and so on.

        Stop when `do` returns False, or, after a batch, when runs of other namespaces wait. The
        next reconcile does the rest.
        """
        window = Window(CONCURRENT_PODS)
        goes_on = True

        async def one(action: A) -> None:
            nonlocal goes_on
            try:
                if goes_on and await do(action):
                    window.grow()
                    done.acted = True
                else:
                    goes_on = False
            except (ClusterError, NotLeading) as error:
                goes_on = False
                done.error = done.error or error
            finally:
                window.leave()

        async with asyncio.TaskGroup() as group:
            for number, action in enumerate(actions):
                await window.enter()
                full = number >= WHILE_OTHERS_WAIT and self._others_wait(run.namespace)
                done.cut = done.cut or (goes_on and full)
                if full or not goes_on:
                    window.leave()
                    break
                group.create_task(one(action))


def _beside_pods(plan: Plan, action: Action) -> Iterator[tuple[Kind, JsonObject]]:
    """Yield the objects to create for an action that is not about a pod."""
    match action:
        case CreateConfigMap() if (manifest := plan.config_map()) is not None:
            yield CONFIG_MAP, manifest
        case CreateService(closed):
            yield SERVICE, plan.service(closed=closed)
        case CreateDeployment():
            yield DEPLOYMENT, plan.deployment()


class KeyPair(NamedTuple):
    """An ed25519 pair in OpenSSH formats: a PEM private key and an authorized_keys line."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """Generate a new pair."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(pem.decode(), f"{public.decode()}\n")
