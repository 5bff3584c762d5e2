"""Apply one object by server-side apply, delete it if it is ours, and wait for a state."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook import names
from webhook.errors import ClusterError, InstallationError, TimeOver
from webhook.installation.foreign_changes import content
from webhook.installation.object_kinds import GUARD, GUARD_BINDING, key_of
from webhook.installation.restoring import restore
from webhook.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]

# Seconds between two tries, and between two notes about what is waited for.
RETRY_SECONDS: Final = 0.25
NOTE_PERIOD: Final = 2.0


class NotInTime(InstallationError, TimeOver):
    """The time is over; the message names what is still missing."""


class Patience:
    """One time limit, in seconds from now, for several waits, each of which reports what it waits
    for.
    """

    def __init__(
        self,
        seconds: float,
        progress: Progress | None = None,
        *,
        period: float = RETRY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._progress = progress or Progress()
        self._period = period
        self._clock = clock
        self._end = clock() + seconds

    async def until(
        self,
        what: str,
        missing: Callable[[], Awaitable[str]],
        times: int = 1,
        explain: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        """Return once nothing is missing any more, so many times in a row.

        `missing` returns what is missing, or "". `explain` returns why, and is asked less often.
        Both are noted whenever they change. They may fail while the API server is not available;
        a missing right raises at once. Raises NotInTime, with what was noted last.
        """
        words, shown, in_a_row = "", "", 0
        due = self._clock() + NOTE_PERIOD
        while in_a_row < times:
            if shortage := await _describe_missing(missing):
                words = shortage
            in_a_row = 0 if shortage else in_a_row + 1
            if in_a_row == times:
                return
            now = self._clock()
            if now >= min(due, self._end):
                why = await _describe_missing(explain) if explain else ""
                text = f"{words}: {why}" if why else words
                if now >= self._end:
                    raise NotInTime(
                        f"{what}: not within {self._seconds:g} s, for {text}. Nothing is undone: "
                        "the same command goes on from here"
                    )
                if shortage and text != shown:
                    self._progress.note(text)
                    shown = text
                due = now + NOTE_PERIOD
            await asyncio.sleep(self._period)


async def _describe_missing(missing: Callable[[], Awaitable[str]]) -> str:
    try:
        return await missing()
    except ClusterError as error:
        if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise
        return str(error)


Result = Literal["created", "changed", "unchanged", "kept", "deleted"]

# Writes of one object, each after another client has written it.
_TRIES: Final = 5
# Forced: the manifests win over other owners of the same fields.
_QUERY: Final = {
    "fieldManager": names.INSTALL_MANAGER,
    "force": "true",
    "fieldValidation": "Strict",
}
NAME_LABEL: Final = "app.kubernetes.io/name"


async def apply(
    client: Client,
    key: Key,
    wanted: Mapping[str, Any],
    check: Callable[[Json | None], None] = lambda _: None,
) -> Result:
    """Write the object as it is wanted, without what others have added to it.

    `check` gets what is there, and raises if it may not be written. Nothing is written over a
    version that was not read. Raises ClusterError, or InstallationError.
    """
    first: Json | None = None
    restored: Json | None = None
    for _ in range(_TRIES):
        live = await client.find(key.path)
        if restored is None:
            check(live)
            first = live
        elif live is None or content(live) != content(restored):
            break
        try:
            body = wanted
            if live:
                restored = await restore(client, key, live, wanted)
                body = of_version(restored, wanted)
            return result_of(first, await client.patch(key.path, body, "apply", query=_QUERY))
        except ClusterError as error:
            if live is None or error.status != HTTPStatus.CONFLICT:
                raise _describe_refusal(key, error) from error
    raise InstallationError(
        f"{key} is being changed by another client. Nothing is undone; the same command goes on "
        "from here"
    )


def of_version(live: Json, wanted: Mapping[str, Any]) -> Json:
    """Return the wanted object as a change of the version that was read, and no other."""
    version = live["metadata"]["resourceVersion"]
    return {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}


def result_of(before: Json | None, after: Json) -> Result:
    """Return what a write did to an object."""
    if before is None:
        return "created"
    version = "resourceVersion"
    same = before["metadata"][version] == after["metadata"][version]
    return "unchanged" if same else "changed"


def _describe_refusal(key: Key, error: ClusterError) -> InstallationError:
    """Return what was refused, and the cure by the status."""
    if "denied the request" in error.why:
        cure = "change what it refuses; the same command goes on from here"
    elif error.status == HTTPStatus.FORBIDDEN:
        cure = "an installation needs an administrator's rights: `kubectl auth can-i '*' '*'`"
    elif error.status is None:
        cure = "try again: what is there already is found again"
    else:
        cure = "nothing is undone; the same command goes on from here"
    return InstallationError(f"{key}: {error.why}. {cure[0].upper()}{cure[1:]}")


async def is_ours(client: Client, key: Key, ours: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether the object exists and is ours, so that `remove` would delete it."""
    live_object = await client.find(key.path)
    return live_object is not None and ours(live_object)


async def remove(client: Client, key: Key, ours: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Delete the object if it exists and is ours; return whether it did. Raises ClusterError.

    The uid that was read is a precondition.
    """
    live_object = await client.find(key.path)
    if live_object is None or not ours(live_object):
        return False
    try:
        preconditions = {"uid": live_object["metadata"]["uid"]}
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        await client.delete(key.path, options)
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise
    return True


async def list_guards(client: Client) -> dict[Key, Json]:
    """Return the guards in the cluster: policies, and their bindings for each source."""
    guards = {
        key_of(kind, guard["metadata"]["name"]): guard
        for kind in (GUARD, GUARD_BINDING)
        for guard in (
            await client.list(key_of(kind, "any").collection, lambda document: document)
        ).items
    }
    return {key: guard for key, guard in guards.items() if key.name.startswith(names.GUARDS)}


async def ended(client: Client, key: Key) -> str:
    """Return why an object that is being deleted still exists; "" if it is gone, or is not
    deleted."""
    live_object = await client.find(key.path)
    if not live_object or not live_object["metadata"].get("deletionTimestamp"):
        return ""
    conditions = (live_object.get("status") or {}).get("conditions") or ()
    why = [condition["message"] for condition in conditions if condition.get("message")]
    return f"{key} is being deleted: {why[-1]}" if why else f"{key} is being deleted"


def applied(live_object: Mapping[str, Any]) -> bool:
    """Return whether `fairlead install` has applied it."""
    managers = live_object["metadata"].get("managedFields") or ()
    return any(entry.get("manager") == names.INSTALL_MANAGER for entry in managers)


def labelled(live_object: Mapping[str, Any]) -> bool:
    """Return whether it has the label of all objects in the manifests."""
    return (live_object["metadata"].get("labels") or {}).get(NAME_LABEL) == names.MANAGER


def applied_or_labelled(live_object: Mapping[str, Any]) -> bool:
    """Return whether `fairlead install` has applied it, or it has the label of the manifests."""
    return applied(live_object) or labelled(live_object)
