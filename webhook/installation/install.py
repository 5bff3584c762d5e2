"""Install or upgrade, and wait until the webhook answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import InstallationError
from webhook.installation import policy_plan, rollout
from webhook.installation.apply import Result, applied, apply, ended, get_object, guard_keys, remove
from webhook.installation.choices import is_stamp_guard
from webhook.installation.manifests import CONFIG_MAP, INTERCEPTION, JUDGING, WEBHOOK, every_key
from webhook.installation.object_kinds import CRD, DEPLOYMENT, key_of
from webhook.installation.policy_files import changed_by_others, takes_files, without_mount
from webhook.installation.policy_objects import of_key
from webhook.installation.probe import ANSWERS, probe, probe_policy
from webhook.installation.server_version import check_server
from webhook.installation.stored_policies import read_policies
from webhook.installation.waiting import Patience
from webhook.installation.webhook_configuration import intercept
from webhook.validating import POLICIES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    from webhook.installation.object_kinds import Key
    from webhook.installation.policy_plan import Plan
    from webhook.installation.waiting import Progress
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Missing: TypeAlias = Callable[[], Awaitable[str]]

_QUERY: Final = {"fieldManager": names.INSTALL_MANAGER}
# Seconds for which old replicas may still answer after a rollout, while they drain.
_DRAINING: Final = 40.0


class Done(NamedTuple):
    """The result for one object."""

    key: Key
    result: Result


class Installer:
    """Works on one cluster. Every call raises ClusterError or InstallationError."""

    def __init__(self, client: Client, patience: Patience, progress: Progress) -> None:
        self._client = client
        self._patience = patience
        self._progress = progress
        self._done: list[Done] = []

    async def install(
        self,
        objects: Mapping[Key, Json],
        *,
        own_policies: bool = False,
        probe_in: str = "default",
    ) -> Sequence[Done]:
        """Apply the objects, in their order, and return once the webhook answers for a pod.

        Policies are written before the webhook reads them from the cluster. The configurations
        come after the Deployments are available, and the guard against pods without a stamp after
        the first stamp. Objects that were not chosen are deleted if an earlier installation has
        applied them. `own_policies`: the user has chosen the policies.
        """
        self._done = []
        await check_server(self._client, self._progress)
        guards = {key: each for key, each in objects.items() if is_stamp_guard(key)}
        late = {*guards, INTERCEPTION, JUDGING}
        first = {key: each for key, each in objects.items() if key not in late and not of_key(key)}
        await self._wait_for_ends(first)
        plan = await policy_plan.plan_policies(self._client, objects, given=own_policies)
        for note in plan.notes:
            self._progress.note(note)
        with self._progress.step(f"applying {len(objects)} objects"):
            await self._definitions(first)
            await self._apply_all(first, before=True, own_policies=own_policies)
            unwritten = await self._bring(plan, upgrade=await self._is_upgrade(first))
            await self._apply_all(first, before=False, own_policies=own_policies)
        await self._wait_for_pods(first)
        await self._intercept(objects[INTERCEPTION], probe_in)
        await self._judge(objects[JUDGING])
        await self._bring_late(unwritten)
        for key, each in guards.items():
            self._note(key, await apply(self._client, key, each))
        for key in sorted({*every_key(), *await guard_keys(self._client)} - objects.keys()):
            if await remove(self._client, key, applied):
                self._note(key, "deleted")
        return self._done

    async def _wait_for_ends(self, objects: Mapping[Key, Json]) -> None:
        """Wait for objects that an earlier removal still deletes."""
        for key in objects:
            if key.kind.name in (CRD, "Namespace") and await ended(self._client, key):

                async def missing(key: Key = key) -> str:
                    return await ended(self._client, key)

                with self._progress.step(f"waiting for the end of the former {key}"):
                    await self._patience.until(str(key), missing)

    async def _definitions(self, objects: Mapping[Key, Json]) -> None:
        definitions = [key for key in objects if key.kind.name == CRD]
        for key in definitions:
            self._note(key, await apply(self._client, key, objects[key]))
        for key in definitions:

            async def missing(key: Key = key) -> str:
                conditions = (await self._client.get(key.path)).get("status", {}).get("conditions")
                states = {each["type"]: each["status"] for each in conditions or ()}
                return "" if states.get("Established") == "True" else f"{key} is not served yet"

            await self._patience.until("the API of Runs and policies", missing)

    async def _apply_all(
        self, objects: Mapping[Key, Json], *, before: bool, own_policies: bool
    ) -> None:
        """Apply what comes before the programs, or the programs and what comes after them."""
        programs = key_of(DEPLOYMENT, "").rank
        for key, each in objects.items():
            if key.kind.name != CRD and before == (key.rank < programs):
                await self._apply(key, each, own_policies=own_policies)

    async def _is_upgrade(self, objects: Mapping[Key, Json]) -> bool:
        """Whether the webhook that serves has another image than the one to install."""
        live = await get_object(self._client, WEBHOOK.path) if WEBHOOK in objects else None
        return live is not None and _images(live) != _images(objects[WEBHOOK])

    async def _bring(self, plan: Plan, *, upgrade: bool) -> Mapping[Key, Json]:
        """Write the policies; return those that no webhook could validate yet.

        If the webhook does not answer, the rest of the installation fixes it. On an upgrade the
        same goes for a webhook that rejects what it does not know yet. If the policies come from
        files, all of them must be written first.
        """
        for key in plan.same:
            self._note(key, "unchanged")
        for key, why in plan.kept.items():
            self._progress.note(f"{key} is left as it is: {why}")
            self._note(key, "kept")
        left: dict[Key, Json] = {}
        for key, wanted in plan.writes.items():
            try:
                self._note(key, await policy_plan.write(self._client, key, wanted))
            except policy_plan.Unanswered:
                if plan.content:
                    raise
                left[key] = wanted
            except policy_plan.Refused:
                if plan.content or not upgrade:
                    raise
                self._progress.note(
                    f"{key} is refused by the webhook that serves now, which is of another "
                    "version: it is written after the rollout"
                )
                left[key] = wanted
        if not policy_plan.same_content(plan, await read_policies(self._client)):
            raise InstallationError(
                "policies were changed meanwhile. The webhook is not changed; run the same "
                "command again"
            )
        return left

    async def _bring_late(self, unwritten: Mapping[Key, Json]) -> None:
        draining = Patience(_DRAINING)
        for key, wanted in unwritten.items():

            async def missing(key: Key = key, wanted: Json = wanted) -> str:
                try:
                    self._note(key, await policy_plan.write(self._client, key, wanted))
                except policy_plan.Unanswered as error:
                    return str(error)
                return ""

            async def refusal(key: Key = key, write: Missing = missing) -> str:
                try:
                    await self._patience.until(str(key), write)
                except policy_plan.Refused as error:
                    return str(error)
                return ""

            await draining.until(str(key), refusal)

    async def _apply(self, key: Key, wanted: Json, *, own_policies: bool) -> None:
        if key == CONFIG_MAP and not own_policies:
            live = await get_object(self._client, key.path)
            if live and changed_by_others(live, wanted):
                self._progress.note(
                    f"{key} is not changed, because it was edited in the cluster (--policies "
                    "DIR replaces it)"
                )
                self._note(key, "kept")
                return
        result = await apply(self._client, key, wanted)
        if key == CONFIG_MAP:
            result = await self._without_foreign_files(key, wanted, result)
        elif key == WEBHOOK and not takes_files(wanted):
            result = await self._without_mount(key, result)
        self._note(key, result)

    async def _without_mount(self, key: Key, result: Result) -> Result:
        """Remove the mount of the former ConfigMap from the pods."""
        patch = without_mount(await self._client.get(key.path))
        if patch is None:
            return result
        await self._client.patch(key.path, patch, "strategic", query=_QUERY)
        return "changed"

    async def _without_foreign_files(self, key: Key, wanted: Json, result: Result) -> Result:
        """Remove files that others put into the ConfigMap: they would be policies too."""
        live = await self._client.get(key.path)
        gone = set(live.get("data") or {}) - set(wanted["data"])
        if not gone and not live.get("binaryData"):
            return result
        patch = {"data": dict.fromkeys(gone), "binaryData": None}
        await self._client.patch(key.path, patch, "merge", query=_QUERY)
        return "changed"

    async def _wait_for_pods(self, objects: Mapping[Key, Json]) -> None:
        for key in objects:
            if key.kind.name != DEPLOYMENT:
                continue

            reported: set[str] = set()

            async def missing(key: Key = key, reported: set[str] = reported) -> str:
                live = await self._client.get(key.path)
                words = rollout.missing(live)
                if words:
                    await self._report_images(live, reported)
                return words

            if local := [each for each in _images(objects[key]) if "/" not in each]:
                self._progress.note(
                    f"image {local[0]} is in no registry: the nodes need it before (`kind load "
                    f"docker-image {local[0]}`); otherwise give one that they can pull: --image "
                    "REGISTRY/fairlead:TAG"
                )
            with self._progress.step(f"waiting for {key}"):
                await self._patience.until(str(key), missing)

    async def _report_images(self, deployment: Json, reported: set[str]) -> None:
        """Report at once that an image cannot be pulled."""
        pods = f"/api/v1/namespaces/{deployment['metadata']['namespace']}/pods"
        for trouble in rollout.troubles(deployment, (await self._client.get(pods))["items"]):
            if trouble.of_image and trouble.what not in reported:
                reported.add(trouble.what)
                self._progress.note(f"{trouble.what}; {trouble.cure}")

    async def _intercept(self, wanted: Json, probe_in: str) -> None:
        with self._progress.step("having pods of runs sent to the webhook"):
            result = await intercept(self._client, INTERCEPTION, wanted, self._patience)
        self._note(INTERCEPTION, result)
        answers = 0

        async def missing() -> str:
            nonlocal answers
            tried = await probe(self._client, probe_in)
            answers = answers + 1 if tried.was_answered else 0
            if answers >= ANSWERS:
                return ""
            reports = f"the API server reports: {tried.words}"
            return reports if tried.words else "it comes back without a stamp"

        with self._progress.step("waiting for the webhook to answer for a pod of a run"):
            await self._patience.until("a pod of a run by dry run", missing)

    async def _judge(self, wanted: Json) -> None:
        with self._progress.step("having policies judged before they are stored"):
            result = await intercept(self._client, JUDGING, wanted, self._patience)
            self._note(JUDGING, result)
            if any(each["name"] == POLICIES for each in wanted["webhooks"]):

                async def missing() -> str:
                    return await probe_policy(self._client)

                await self._patience.until("a capacity class by dry run", missing)

    def _note(self, key: Key, result: Result) -> None:
        self._done.append(Done(key, result))


def _images(deployment: Json) -> list[str]:
    return [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]]
