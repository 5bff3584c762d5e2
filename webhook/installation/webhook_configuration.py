"""Change the webhook configuration: apply it, disable it for a time, enable it."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import suspension
from webhook.cluster_objects.heartbeat import holder
from webhook.errors import ClusterError, InstallationError
from webhook.installation.apply import Result, apply, result_of
from webhook.installation.manifests import INTERCEPTION, LEASE
from webhook.installation.restoring import restore
from webhook.interception import OWN_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.installation.apply import Patience
    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]

_QUERY: Final = {"fieldManager": suspension.FIELD_MANAGER}
# Other clients write to it now and then, such as the controller.
_TRIES: Final = 5


async def intercept(
    client: Client,
    key: Key,
    wanted: Json,
    patience: Patience,
    check: Callable[[Json | None], None] = lambda _: None,
) -> Result:
    """Apply the configuration, each entry with an authority that the API server trusts.

    An entry without a caBundle gets no rules until it has one: the API server could not verify the
    webhook, and would reject pods. Entries of ours that are not wanted any more are removed. A
    disabled configuration is enabled. `check` is as for `apply`.
    """
    before = live = await client.find(key.path)
    check(before)
    if live and _has_unwanted(live, wanted):
        # All selectors change with it: otherwise no entry would match the pods of one that goes.
        live = await restore(client, key, live, wanted)
    if names_without_authority(live, wanted):
        await apply(client, key, _quiet(live, wanted))

        async def missing() -> str:
            waiting = names_without_authority(await client.find(key.path), wanted)
            has = "has" if len(waiting) == 1 else "have"
            return f"{', '.join(waiting)} {has} no caBundle yet" if waiting else ""

        await patience.until("the webhook's authority", missing)
    await apply(client, key, wanted)
    after = await client.get(key.path)
    if suspension.parse_suspension(after):
        after = await client.patch(key.path, suspension.resume(after), "merge", query=_QUERY)
    return result_of(before, after)


def names_without_authority(live: Json | None, wanted: Mapping[str, Any]) -> list[str]:
    """Return the wanted entries that would have no caBundle."""
    trusted = {entry["name"] for entry in [*_entries(live), *wanted["webhooks"]] if _bundle(entry)}
    return [entry["name"] for entry in wanted["webhooks"] if entry["name"] not in trusted]


def _quiet(live: Json | None, wanted: Json) -> Json:
    """Return the wanted configuration, without rules in entries that have no caBundle yet.

    The other entries keep their selectors: otherwise no entry would match a pod with two marks.
    """
    waiting = names_without_authority(live, wanted)
    now = {entry["name"]: entry["objectSelector"] for entry in _entries(live)}
    return {
        **wanted,
        "webhooks": [
            {**entry, "rules": []}
            if entry["name"] in waiting
            else {**entry, "objectSelector": now.get(entry["name"], entry["objectSelector"])}
            for entry in wanted["webhooks"]
        ],
    }


def _has_unwanted(live: Json, wanted: Json) -> bool:
    wanted_names = {entry["name"] for entry in wanted["webhooks"]}
    return any(
        entry["name"] not in wanted_names and entry["name"].endswith(OWN_SUFFIX)
        for entry in _entries(live)
    )


def _entries(configuration: Json | None) -> Sequence[Json]:
    return (configuration or {}).get("webhooks") or ()


def _bundle(entry: Mapping[str, Any]) -> str:
    return str(entry["clientConfig"].get("caBundle") or "")


class Enabled(NamedTuple):
    """What `enable` found: whether it was disabled, and entries whose rules had been lost."""

    was_disabled: bool
    lost: tuple[str, ...]


class Status(NamedTuple):
    """The configuration now: until when it is disabled, its entries, and those without rules."""

    until: datetime | None
    entries: tuple[str, ...]
    silent: tuple[str, ...]

    @property
    def sent(self) -> bool:
        """Whether all pods that it selects are sent to the webhook."""
        return bool(self.entries) and not self.until and not self.silent


class Disabled(NamedTuple):
    """Until when it was disabled before, and the API server's time of this change."""

    before: datetime | None
    server_time: datetime | None


async def read_status(client: Client) -> Status:
    """Return what the configuration says; without one, a status without entries."""
    live = await client.find(INTERCEPTION.path) or {}
    current_suspension = suspension.parse_suspension(live) if live else None
    return Status(
        current_suspension.until if current_suspension else None,
        tuple(entry["name"] for entry in _entries(live)),
        _without_rules(live),
    )


async def disable(client: Client, until: datetime) -> Disabled:
    """Remove the webhook's rules until then, by one patch.

    Raises InstallationError if there is no webhook configuration, and ClusterError.
    """
    live, stored = await _change(client, lambda live: suspension.suspend(live, until))
    current_suspension = suspension.parse_suspension(live)
    return Disabled(current_suspension.until if current_suspension else None, written_at(stored))


def written_at(stored: Json) -> datetime | None:
    """Return when the API server, by its own clock, stored our last change."""
    times = [
        entry["time"]
        for entry in stored["metadata"].get("managedFields") or ()
        if entry.get("manager") == suspension.FIELD_MANAGER and entry.get("time")
    ]
    return datetime.fromisoformat(max(times)) if times else None


async def enable(client: Client) -> Enabled:
    """Restore the rules now. Raises as `disable` does."""
    live, _ = await _change(client, lambda live: suspension.resume(live) if _is_off(live) else None)
    current_suspension = suspension.parse_suspension(live)
    return Enabled(
        _is_off(live), current_suspension.lost if current_suspension else _without_rules(live)
    )


def _without_rules(live: Json) -> tuple[str, ...]:
    return tuple(entry["name"] for entry in _entries(live) if not entry.get("rules"))


def _is_off(live: Json) -> bool:
    return bool(_without_rules(live)) or suspension.parse_suspension(live) is not None


async def leader(client: Client, now: datetime) -> str:
    """Return the leading controller, which will restore the rules; "" if there is none, or
    unknown."""
    try:
        return holder(await client.get(LEASE.path), now)
    except ClusterError:
        return ""


async def _change(client: Client, patch_of: Callable[[Json], Json | None]) -> tuple[Json, Json]:
    """Return the configuration before and after a patch of it; after a conflict it is read
    again."""
    for _ in range(_TRIES):
        live = await client.find(INTERCEPTION.path)
        if live is None:
            raise InstallationError(
                f"there is no {INTERCEPTION}: no pod is sent to Fairlead. Is it the right cluster? "
                "Check with: `kubectl config current-context`"
            )
        patch = patch_of(live)
        try:
            if patch is None:
                return live, live
            return live, await client.patch(INTERCEPTION.path, patch, "merge", query=_QUERY)
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
    raise InstallationError(
        f"{INTERCEPTION} was changed by another client at each of {_TRIES} tries: try again"
    )
