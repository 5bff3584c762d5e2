"""Puts an installation into a cluster, or brings one up to date, and waits until it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.installation import rollout
from webhook.installation.apply import Result, apply, read
from webhook.installation.choices import configuration_of, is_stamp_guard
from webhook.installation.interception import intercept
from webhook.installation.kinds import CRD
from webhook.installation.policies import changed_by_others
from webhook.installation.probe import ANSWERS, probe
from webhook.installation.removal import applied, ended, remove

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.installation.kinds import Key
    from webhook.installation.patience import Patience
    from webhook.installation.progress import Progress
    from webhook.kube.client import Client

    Json = dict[str, Any]


class Done(NamedTuple):
    """What became of one object."""

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
        stale: Collection[Key] = (),
        own_policies: bool = False,
        probe_in: str = "default",
    ) -> Sequence[Done]:
        """Apply the objects, in their order, and return once the webhook answers for a pod.

        The webhook configuration comes after the Deployments are available, and what denies pods
        without a stamp after the first stamp. `stale` are objects of other overlays: those that an
        earlier installation has applied are deleted. With `own_policies` the ConfigMap of policies
        is written even if somebody has changed it.
        """
        self._done = []
        found = configuration_of(objects)
        guards = {key: each for key, each in objects.items() if is_stamp_guard(key)}
        late = {*guards, *([found[0]] if found else [])}
        first = {key: each for key, each in objects.items() if key not in late}
        await self._wait_for_ends(first)
        with self._progress.step(f"applying {len(objects)} objects"):
            await self._definitions(first)
            for key, each in first.items():
                if key.kind.name != CRD:
                    await self._apply(key, each, own_policies=own_policies)
        await self._wait_for_pods(first)
        if found:
            await self._intercept(*found, probe_in)
        for key, each in guards.items():
            await self._note(key, await apply(self._client, key, each))
        for key in stale:
            if await remove(self._client, key, applied):
                await self._note(key, "deleted")
        return self._done

    async def _wait_for_ends(self, objects: Mapping[Key, Json]) -> None:
        """What an earlier uninstall deletes still cannot be made anew, nor what belongs to it."""
        for key in objects:
            if key.kind.name in (CRD, "Namespace") and await ended(self._client, key):

                async def missing(key: Key = key) -> str:
                    return await ended(self._client, key)

                with self._progress.step(f"waiting for the end of the former {key}"):
                    await self._patience.until(str(key), missing)

    async def _definitions(self, objects: Mapping[Key, Json]) -> None:
        definitions = [key for key in objects if key.kind.name == CRD]
        for key in definitions:
            await self._note(key, await apply(self._client, key, objects[key]))
        for key in definitions:

            async def missing(key: Key = key) -> str:
                conditions = (await self._client.get(key.path)).get("status", {}).get("conditions")
                states = {each["type"]: each["status"] for each in conditions or ()}
                return "" if states.get("Established") == "True" else f"{key} is not served yet"

            await self._patience.until("the API of Runs and policies", missing)

    async def _apply(self, key: Key, wanted: Json, *, own_policies: bool) -> None:
        if key.name == names.POLICIES_CONFIG_MAP and not own_policies:
            live = await read(self._client, key.path)
            if live and changed_by_others(live, wanted):
                self._progress.note(
                    f"{key} is left as it is: somebody has changed it (--policies DIR replaces it)"
                )
                await self._note(key, "kept")
                return
        result = await apply(self._client, key, wanted)
        if key.name == names.POLICIES_CONFIG_MAP:
            result = await self._without_others(key, wanted, result)
        await self._note(key, result)

    async def _without_others(self, key: Key, wanted: Json, result: Result) -> Result:
        """Files that somebody else put into the ConfigMap go: they would be policies too."""
        live = await self._client.get(key.path)
        gone = set(live.get("data") or {}) - set(wanted["data"])
        if not gone and not live.get("binaryData"):
            return result
        patch = {"data": dict.fromkeys(gone), "binaryData": None}
        query = {"fieldManager": names.INSTALL_MANAGER}
        await self._client.patch(key.path, patch, "merge", query=query)
        return "changed"

    async def _wait_for_pods(self, objects: Mapping[Key, Json]) -> None:
        for key in objects:
            if key.kind.name != "Deployment":
                continue

            async def missing(key: Key = key) -> str:
                return rollout.missing(await self._client.get(key.path))

            with self._progress.step(f"waiting for {key}"):
                await self._patience.until(str(key), missing)

    async def _intercept(self, key: Key, wanted: Json, probe_in: str) -> None:
        with self._progress.step("having pods of runs sent to the webhook"):
            result = await intercept(self._client, key, wanted, self._patience)
        await self._note(key, result)
        answers = 0

        async def missing() -> str:
            nonlocal answers
            tried = await probe(self._client, probe_in)
            answers = answers + 1 if tried.answered else 0
            return "" if answers >= ANSWERS else _unanswered(tried.words)

        with self._progress.step("waiting for the webhook to answer for a pod of a run"):
            await self._patience.until("a pod of a run by dry run", missing)

    async def _note(self, key: Key, result: Result) -> None:
        self._done.append(Done(key, result))


def _unanswered(words: str) -> str:
    if words:
        return f"the API server says: {words}"
    return "it comes back without a stamp"
