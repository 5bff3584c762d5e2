"""Brings the webhook configuration into the cluster without refusing a pod on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names, suspension
from webhook.installation.apply import Result, apply, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.kinds import Key
    from webhook.installation.patience import Patience
    from webhook.kube.client import Client

    Json = dict[str, Any]

_OURS: Final = f".{names.GROUP}"


async def intercept(client: Client, key: Key, wanted: Json, patience: Patience) -> Result:
    """Have the configuration as it is wanted, each entry with an authority to trust.

    An entry whose authority is not there yet has no rules until it is: the API server could not
    believe the webhook, and would refuse the pod. Entries of ours that are not wanted any more go.
    If it was disabled, it is not any more.
    """
    before = await read(client, key.path)
    await _forget(client, key, wanted)
    if names_without_authority(await read(client, key.path), wanted):
        await apply(client, key, _quiet(await read(client, key.path), wanted))

        async def missing() -> str:
            waiting = names_without_authority(await read(client, key.path), wanted)
            has = "has" if len(waiting) == 1 else "have"
            return f"{', '.join(waiting)} {has} no caBundle yet" if waiting else ""

        await patience.until("the webhook's authority", missing)
    result = await apply(client, key, wanted)
    live = await client.get(key.path)
    if suspension.read(live):
        query = {"fieldManager": suspension.FIELD_MANAGER}
        await client.patch(key.path, suspension.resume(live), "merge", query=query)
    if before is None:
        return "created"
    after = await client.get(key.path)
    version = "resourceVersion"
    return result if before["metadata"][version] == after["metadata"][version] else "changed"


def names_without_authority(live: Json | None, wanted: Mapping[str, Any]) -> list[str]:
    """The wanted entries for which the API server would know no authority to trust."""
    bundles = {each["name"]: _bundle(each) for each in _entries(live)}
    return [
        each["name"]
        for each in wanted["webhooks"]
        if not _bundle(each) and not bundles.get(each["name"])
    ]


def _quiet(live: Json | None, wanted: Json) -> Json:
    """The wanted one, but for the entries that have to wait.

    Those that need not still select what they do: a pod with two marks is nobody's otherwise.
    """
    waiting = names_without_authority(live, wanted)
    now = {each["name"]: each["objectSelector"] for each in _entries(live)}
    return {
        **wanted,
        "webhooks": [
            {**each, "rules": []}
            if each["name"] in waiting
            else {**each, "objectSelector": now.get(each["name"], each["objectSelector"])}
            for each in wanted["webhooks"]
        ],
    }


async def _forget(client: Client, key: Key, wanted: Json) -> None:
    """Take entries of ours away that are not wanted; the others select for them from then on.

    An apply without them would not do: whoever keeps certificates owns a field of each, and of
    such an entry that field alone would be left, which the API server refuses.
    """
    live = await read(client, key.path)
    selectors = {each["name"]: each["objectSelector"] for each in wanted["webhooks"]}
    kept = [
        {**each, "objectSelector": selectors.get(each["name"], each["objectSelector"])}
        for each in _entries(live)
        if each["name"] in selectors or not each["name"].endswith(_OURS)
    ]
    if live and len(kept) < len(live["webhooks"]):
        version = live["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "webhooks": kept}
        await client.patch(key.path, patch, "merge", query={"fieldManager": names.INSTALL_MANAGER})


def _entries(configuration: Json | None) -> Iterator[Json]:
    yield from (configuration or {}).get("webhooks") or ()


def _bundle(entry: Mapping[str, Any]) -> str:
    return str(entry["clientConfig"].get("caBundle") or "")
