"""Does what reconciling decided: one thing after the other, pods side by side."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from webhook.controller.objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    POD,
    RUN,
    SECRET,
    SERVICE,
    Kind,
)
from webhook.controller.refusals import NAME_TAKEN
from webhook.errors import ClusterError, NotLeading
from webhook.kube.window import Window
from webhook.run.actions import (
    CreateConfigMap,
    CreateDeployment,
    CreateKeys,
    CreatePod,
    CreateService,
    DeleteDeployment,
    DeletePod,
    DeleteRun,
    ForceDeletePod,
    OpenService,
    RestoreKeys,
    ScaleDeployment,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from webhook.controller.objects import Objects
    from webhook.controller.refusals import Refusals
    from webhook.placement.shapes import JsonObject
    from webhook.run.actions import Action
    from webhook.run.model import Run
    from webhook.run.observed import Observed, Refusal
    from webhook.run.plan import Plan

A = TypeVar("A")

# Pods of one run that are created or deleted at once, at most: what the writer lets through.
AT_ONCE: Final = 32


class Counts(Protocol):
    """Who counts what is done."""

    def pod_created(self) -> None:
        """A pod was created, or found created."""

    def pod_deleted(self) -> None:
        """A pod was deleted."""

    def creation_refused(self, reason: str) -> None:
        """A creation was refused, for this reason."""


@dataclass(slots=True)
class Done:
    """What came of the actions.

    made, refused: creations by name, and those that the API server refused.
    left: seconds until creations may go on that were held back; None if none were.
    error: the first trouble of the API server, after which nothing more was begun.
    acted: whether anything was created or deleted.
    """

    made: set[str] = field(default_factory=set)
    refused: list[Refusal] = field(default_factory=list)
    left: float | None = None
    error: ClusterError | NotLeading | None = None
    acted: bool = False

    def wait(self, seconds: float) -> None:
        """A creation is held back for so long."""
        self.left = seconds if self.left is None else min(self.left, seconds)


class ActionExecutor:
    """Carries out the actions of one run after the other; one object for all runs."""

    def __init__(self, objects: Objects, refusals: Refusals, counts: Counts) -> None:
        self._objects = objects
        self._refusals = refusals
        self._counts = counts

    async def carry_out(
        self, run: Run, plan: Plan | None, observed: Observed, actions: Sequence[Action]
    ) -> Done:
        """Do all this, creations of pods last. Raises nothing of the API server: see Done.error.

        Without a plan, of a run that is over, nothing is created.
        """
        done = Done()
        deletions = [each for each in actions if isinstance(each, DeletePod | ForceDeletePod)]
        await self._side_by_side(deletions, lambda each: self._delete_pod(run, each), done)
        try:
            for action in actions:
                if not done.error:
                    await self._one(run, plan, observed, action, done)
        except (ClusterError, NotLeading) as error:
            done.error = error
        pods = [action for action in actions if isinstance(action, CreatePod)]
        # What a run needs beside its pods is there before the first of them.
        if plan and not done.error and not done.refused and done.left is None:
            await self._create_pods(run, plan, pods, done)
        return done

    async def _one(
        self, run: Run, plan: Plan | None, observed: Observed, action: Action, done: Done
    ) -> None:
        """Do one thing, unless it is about a pod."""
        match action:
            case ScaleDeployment(replicas) if observed.deployment is not None:
                await self._objects.scale(run, observed.deployment.uid, replicas)
            case DeleteDeployment() if observed.deployment is not None:
                uid = observed.deployment.uid
                await self._objects.delete(DEPLOYMENT, run.namespace, run.name, uid=uid)
            case DeleteRun():
                uid, version = run.metadata.uid, run.metadata.resource_version
                await self._objects.delete(RUN, run.namespace, run.name, uid=uid, version=version)
            case OpenService():
                await self._objects.open_service(run, observed.service_uid)
            case RestoreKeys() if plan is not None:
                await self._objects.create(SECRET, run, _keys(plan))
            case _ if plan is not None:
                for kind, manifest in _beside_pods(plan, action):
                    await self._create(kind, run, manifest, done)

    async def _create(self, kind: Kind, run: Run, manifest: JsonObject, done: Done) -> None:
        """Create one object, unless creations are held back or one before it was refused."""
        name: str = manifest["metadata"]["name"]
        if (pause := self._refusals.pause(run.metadata.uid, name)) > 0:
            done.wait(pause)
        if not done.refused and done.left is None:
            self._note(await self._objects.create(kind, run, manifest), name, done)

    async def _create_pods(
        self, run: Run, plan: Plan, actions: Sequence[CreatePod], done: Done
    ) -> None:
        free = []
        for action in actions:
            name = run.pod_name(action.role, action.index)
            if (pause := self._refusals.pause(run.metadata.uid, name)) > 0:
                done.wait(pause)
            else:
                free.append(action)

        async def create(action: CreatePod) -> bool:
            manifest = plan.pod(action.role, action.index, action.attempt)
            refused = await self._objects.create(POD, run, manifest)
            self._note(refused, manifest["metadata"]["name"], done)
            if refused is None:
                self._counts.pod_created()
            # Whatever else is refused, the next pod would be too.
            return refused is None or refused.reason == NAME_TAKEN

        await self._side_by_side(free, create, done)

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
        self, actions: Sequence[A], do: Callable[[A], Awaitable[bool]], done: Done
    ) -> None:
        """Do one, then two, then four at once, and so on; begin no more once one says no."""
        window = Window(AT_ONCE)
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
            for action in actions:
                await window.enter()
                if not goes_on:
                    window.leave()
                    break
                group.create_task(one(action))


def _beside_pods(plan: Plan, action: Action) -> Iterator[tuple[Kind, JsonObject]]:
    """What an action creates, if that is no pod."""
    match action:
        case CreateKeys():
            yield SECRET, _keys(plan)
        case CreateConfigMap() if (manifest := plan.config_map()) is not None:
            yield CONFIG_MAP, manifest
        case CreateService(closed):
            yield SERVICE, plan.service(closed=closed)
        case CreateDeployment():
            yield DEPLOYMENT, plan.deployment()


def _keys(plan: Plan) -> JsonObject:
    """The Secret of the run's SSH keys, with a pair that is new."""
    return plan.keys_secret_manifest(*new_key_pair())


class KeyPair(NamedTuple):
    """An ed25519 pair in OpenSSH's forms: PEM text, and a line of authorized_keys."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """A pair that nobody has seen."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(pem.decode(), f"{public.decode()}\n")
