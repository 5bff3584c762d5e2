"""Install or upgrade, and wait until the webhook answers."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.cluster_objects.deployments import missing_pods
from webhook.errors import ClusterError, InstallationError
from webhook.installation import policy_plan, rollout
from webhook.installation.apply import (
    Patience,
    Result,
    applied,
    apply,
    ended,
    remove,
)
from webhook.installation.changes import (
    read_installed,
    refuse_changed,
)
from webhook.installation.choices import is_stamp_guard
from webhook.installation.manifests import (
    CONTROLLER,
    INTERCEPTION,
    JUDGING,
    WEBHOOK,
)
from webhook.installation.object_kinds import CRD, DEPLOYMENT
from webhook.installation.policy_files import (
    takes_files,
    without_mount,
)
from webhook.installation.policy_plan import of_key
from webhook.installation.preparation import prepare
from webhook.installation.probe import ANSWERS, probe, probe_policy
from webhook.installation.server_version import check_server
from webhook.installation.webhook_configuration import intercept
from webhook.shortening import count_text
from webhook.validating import POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.installation.policy_plan import Plan
    from webhook.installation.stored_options import LastTime
    from webhook.kube.client import Client
    from webhook.progress import Progress

    Json = dict[str, Any]

_QUERY: Final = {"fieldManager": names.INSTALL_MANAGER}
# Seconds for which old replicas may still answer after a rollout, while they drain.
_DRAINING: Final = 40.0


class Installer:
    """Works on one cluster. Every call raises ClusterError or InstallationError."""

    def __init__(
        self,
        client: Client,
        patience: Patience,
        progress: Progress,
        agree: Callable[[Sequence[str]], None],
        namespace: str = "",
    ) -> None:
        """Take what gets the losses of an installation, if any, and raises unless they are agreed
        to; and the namespace where a pod is tried, if one is named.
        """
        self._client = client
        self._patience = patience
        self._progress = progress
        self._agree = agree
        self._done: dict[Key, Result] = {}
        self._planned: Sequence[Key] = ()
        self._writing: Key | None = None
        self._is_new = False
        self._namespace = namespace
        # Why the pod could not be tried, if so.
        self.untried = ""
        self._live: Mapping[Key, Json] = {}

    async def install(
        self,
        objects: Mapping[Key, Json],
        *,
        own_policies: bool = False,
        before: LastTime | None = None,
    ) -> Mapping[Key, Result]:
        """Apply the objects, in their order, and return once the webhook answers for a pod.

        Policies are written before the webhook reads them from the cluster. The configurations
        come after the Deployments are available, and the guard against pods without a stamp after
        the first stamp. Objects that were not chosen are deleted if an earlier installation has
        applied them. `own_policies`: the user has chosen the policies. `before`: what the objects
        add to, read before; None: nothing of last time counts. Before the first change, what it
        takes away has to be agreed to, no other tool may manage the objects, the API server has to
        serve their kinds and to take what is written last, the user needs the rights to write them,
        and pods of the namespace of the trial have to be sent. An object that is not as it was
        read then is not written.
        """
        self._done, self._planned, self._writing = {}, (), None
        await check_server(self._client, self._progress)
        await self._wait_for_ends(objects)
        ready = await prepare(
            self._client,
            objects,
            own_policies=own_policies,
            before=before,
            namespace=self._namespace,
        )
        objects, plan, self._live = ready.objects, ready.policies, ready.live
        for note in ready.notes:
            self._progress.note(note)
        if ready.obstacles:
            raise InstallationError(f"{'; '.join(ready.obstacles)}. Nothing has been changed")
        if lost := await ready.losses():
            self._agree(lost)
            refuse_changed(ready.live, await read_installed(self._client, objects))
        late = {key for key in objects if is_stamp_guard(key)}
        first = [
            key
            for key in objects
            if not of_key(key) and key not in {*late, *ready.kept, INTERCEPTION, JUDGING}
        ]
        definitions = [key for key in first if key.kind.name == CRD]
        programs = [key for key in first if key.rank >= WEBHOOK.rank]
        self._is_new = CONTROLLER not in ready.live
        policies = {*plan.writes, *plan.same, *plan.kept}
        self._planned = [
            *(key for key in objects if not of_key(key) or key in policies),
            *ready.unwanted,
        ]
        with self._progress.step(f"applying {len(objects)} objects"):
            await self._apply(definitions, objects)
            for key in definitions:
                served = partial(_not_served, self._client, key)
                await self._patience.until("the API of Runs and policies", served)
            others = [key for key in first if key not in {*definitions, *programs}]
            await self._apply(others, objects)
            serving = await self._client.find(WEBHOOK.path)
            upgrade = serving is not None and _images(serving) != _images(objects[WEBHOOK])
            self._done |= dict.fromkeys(ready.kept, "kept")
            unwritten = await self._bring(plan, upgrade=upgrade)
            await self._apply(programs, objects)
        for key in programs:
            if key.kind.name == DEPLOYMENT:
                await self._wait_for_pods(key, objects[key])
        await self._intercept(objects[INTERCEPTION], ready.namespace)
        await self._judge(objects[JUDGING])
        await self._bring_late(unwritten)
        await self._apply(sorted(late), objects)
        for key in ready.unwanted:
            with self._write(key):
                if await remove(self._client, key, applied):
                    self._done[key] = "deleted"
        return self._done

    def describe_partial(self) -> Iterator[str]:
        """Yield what an installation that stopped half way has changed, and what it has not."""
        if not self._planned:
            return
        results: dict[str, list[Key]] = {}
        for key, result in self._done.items():
            results.setdefault(result, []).append(key)
        changes = [result for result in ("created", "changed", "deleted") if result in results]
        for result in changes:
            yield f"{result}: {_summary(results[result])}"
        if not changes and not self._writing:
            yield "nothing has been changed"
        if self._writing:
            yield f"not known: {self._writing}, which was being written"
        left = [key for key in self._planned if key not in {*self._done, self._writing}]
        if left:
            yield f"not reached: {_summary(left)}"
        yield "next: the same command goes on from here; fairlead doctor says what is wrong"
        if self._is_new and "created" in changes:
            yield "or: fairlead uninstall deletes what was created"

    async def _wait_for_ends(self, keys: Iterable[Key]) -> None:
        """Wait for objects that an earlier removal still deletes."""
        for key in keys:
            if key.kind.name in (CRD, "Namespace") and await ended(self._client, key):
                with self._progress.step(f"waiting for the end of the former {key}"):
                    await self._patience.until(str(key), partial(ended, self._client, key))

    async def _apply(self, keys: Iterable[Key], objects: Mapping[Key, Json]) -> None:
        for key in keys:
            with self._write(key):
                result = await apply(self._client, key, objects[key], partial(self._check, key))
                if key == WEBHOOK and await self._clean(objects[key]):
                    result = "changed"
                self._done[key] = result

    @contextmanager
    def _write(self, key: Key) -> Iterator[None]:
        """Remember what is written, unless the API server has answered."""
        self._writing = key
        try:
            yield
        except Exception as error:
            if _was_answered(error):
                self._writing = None
            raise
        self._writing = None

    def _check(self, key: Key, live_object: Json | None) -> None:
        """Refuse to write over what was not read before."""
        refuse_changed(
            _only(key, self._live.get(key)), _only(key, live_object), whole=not self._done
        )

    async def _clean(self, wanted: Json) -> bool:
        """Remove the mount that an apply leaves."""
        patch = None
        if not takes_files(wanted):
            patch = without_mount(await self._client.get(WEBHOOK.path))
        if patch:
            await self._client.patch(WEBHOOK.path, patch, "strategic", query=_QUERY)
        return bool(patch)

    async def _bring(self, plan: Plan, *, upgrade: bool) -> Mapping[Key, Json]:
        """Write the policies; return those that no webhook could validate yet.

        If the webhook does not answer, the rest of the installation fixes it. On an upgrade, which
        changes the image of the webhook that serves, the same goes for a webhook that rejects what
        it does not know yet.
        """
        for key in plan.same:
            self._done[key] = "unchanged"
        left: dict[Key, Json] = {}
        for key, wanted in plan.writes.items():
            try:
                with self._write(key):
                    self._done[key] = await policy_plan.write(self._client, key, wanted)
            except policy_plan.NotAccepted as error:
                if error.answered and not upgrade:
                    raise
                left[key] = wanted
                if error.answered:
                    self._progress.note(
                        f"{key} is refused by the webhook that serves now, which is of another "
                        "version: it is written after the rollout"
                    )
        return left

    async def _bring_late(self, unwritten: Mapping[Key, Json]) -> None:
        draining = Patience(_DRAINING, self._progress)
        for key, wanted in unwritten.items():

            async def missing(key: Key = key, wanted: Json = wanted) -> str:
                try:
                    with self._write(key):
                        self._done[key] = await policy_plan.write(self._client, key, wanted)
                except policy_plan.NotAccepted as error:
                    return str(error)
                return ""

            await draining.until(str(key), missing)

    async def _wait_for_pods(self, key: Key, wanted: Json) -> None:
        if local := [image for image in _images(wanted) if "/" not in image]:
            self._progress.note(
                f"image {local[0]} is in no registry: the nodes need it before (`kind load "
                f"docker-image {local[0]}`); otherwise give one that they can pull: --image "
                "REGISTRY/fairlead:TAG"
            )

        async def missing() -> str:
            return missing_pods(await self._client.get(key.path))

        async def explain() -> str:
            return await rollout.explain(self._client, await self._client.get(key.path))

        with self._progress.step(f"waiting for {key}"):
            await self._patience.until(str(key), missing, explain=explain)

    async def _intercept(self, wanted: Json, namespace: str) -> None:
        with (
            self._progress.step("having pods of runs sent to the webhook"),
            self._write(INTERCEPTION),
        ):
            check = partial(self._check, INTERCEPTION)
            result = await intercept(self._client, INTERCEPTION, wanted, self._patience, check)
            self._done[INTERCEPTION] = result

        async def missing() -> str:
            tried = await probe(self._client, namespace)
            self.untried = tried.words if tried.was_prevented else ""
            if tried.was_answered or tried.was_prevented:
                return ""
            reports = f"the API server reports: {tried.words}"
            return reports if tried.words else "it comes back without a stamp"

        with self._progress.step("waiting for the webhook to answer for a pod of a run"):
            await self._patience.until("a pod of a run by dry run", missing, ANSWERS)
        if self.untried:
            self._progress.note(
                f"warning: a pod of a run could not be tried in {namespace}: {self.untried}. "
                "fairlead doctor --namespace NAME tries it elsewhere"
            )

    async def _judge(self, wanted: Json) -> None:
        with self._progress.step("having policies judged before they are stored"):
            with self._write(JUDGING):
                check = partial(self._check, JUDGING)
                result = await intercept(self._client, JUDGING, wanted, self._patience, check)
                self._done[JUDGING] = result
            if any(webhook["name"] == POLICIES for webhook in wanted["webhooks"]):
                judged = partial(probe_policy, self._client)
                await self._patience.until("a capacity class by dry run", judged)


async def _not_served(client: Client, key: Key) -> str:
    established = rollout.condition_of(await client.get(key.path), "Established")
    return "" if established.get("status") == "True" else f"{key} is not served yet"


def _was_answered(error: BaseException | None) -> bool:
    """Return whether the API server has answered the request that failed so."""
    while error is not None:
        if isinstance(error, ClusterError):
            return error.status is not None
        error = error.__cause__
    return False


def _summary(keys: Iterable[Key]) -> str:
    """Return the objects by kind: 5 CustomResourceDefinitions, Namespace fairlead-system."""
    by_kind: dict[str, list[Key]] = {}
    for key in keys:
        by_kind.setdefault(key.kind.name, []).append(key)
    return ", ".join(
        str(same[0]) if len(same) == 1 else count_text(len(same), kind)
        for kind, same in by_kind.items()
    )


def _only(key: Key, live_object: Json | None) -> dict[Key, Json]:
    return {key: live_object} if live_object else {}


def _images(deployment: Json) -> list[str]:
    return [
        container["image"] for container in deployment["spec"]["template"]["spec"]["containers"]
    ]
