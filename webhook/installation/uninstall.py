"""Uninstall: delete the webhook configurations first, then the rest."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.installation.apply import (
    applied_or_labelled,
    ended,
    is_ours,
    labelled,
    list_guards,
    remove,
)
from webhook.installation.changes import read_live, refuse_managed
from webhook.installation.manifests import (
    CONFIG_MAP,
    CONTROLLER,
    INTERCEPTION,
    JUDGING,
    LEASE,
    WEBHOOK,
    every_key,
)
from webhook.installation.object_kinds import CRD, GUARD, GUARD_BINDING, key_of
from webhook.installation.probe import ANSWERS, probe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from webhook.installation.apply import Patience
    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client
    from webhook.progress import Progress

    Json = dict[str, Any]

_NAMESPACE: Final = key_of("Namespace", names.NAMESPACE)
_RUNS: Final = key_of(CRD, f"{names.RUNS}.{names.GROUP}")
_POLICIES: Final = tuple(
    key_of(CRD, f"{resource}.{names.GROUP}") for resource in names.POLICY_RESOURCES.values()
)
# Created by the programs, or by cert-manager for them, and not in the manifests. These names are
# ours.
_SECRETS: Final = tuple(
    key_of("Secret", name, names.NAMESPACE)
    for name in (names.AUTHORITY_SECRET, names.SERVING_SECRET, "fairlead-cert-manager-authority")
)
# Kinds of which users may have objects in our namespace, and objects that Kubernetes puts into
# each namespace.
_LOOKED_AT: Final = (
    ("v1", "configmaps", "ConfigMap", ("kube-root-ca.crt",)),
    ("v1", "secrets", "Secret", ()),
    ("v1", "services", "Service", ()),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", ()),
    ("apps/v1", "deployments", "Deployment", ()),
    ("apps/v1", "statefulsets", "StatefulSet", ()),
    ("apps/v1", "daemonsets", "DaemonSet", ()),
    ("batch/v1", "jobs", "Job", ()),
    ("batch/v1", "cronjobs", "CronJob", ()),
)


class UninstallResult(NamedTuple):
    """What was deleted, and what was kept, each with the reason."""

    deleted: Sequence[Key]
    left: Sequence[str]


async def uninstall(
    client: Client,
    patience: Patience,
    progress: Progress,
    agree: Callable[[], None] = lambda: None,
    *,
    delete_runs: bool = False,
    delete_policies: bool = False,
    dry_run: bool = False,
) -> UninstallResult:
    """Delete the objects that are ours, and what the programs have created.

    The guards are deleted first, then the webhook configurations. Nothing else is deleted before
    the API server has stopped calling the webhook: until then, without an answer, it would reject
    pods of runs and all policies. The definition of Runs and every Run stay, unless `delete_runs`;
    those of policies and classes stay, unless `delete_policies`. With `dry_run` nothing is deleted,
    and the result is what would be. Raises ClusterError and NotInTime,
    and InstallationError if another tool manages the objects, which would write them again; before
    anything is deleted, what `agree` raises.
    """
    keys = sorted({CONFIG_MAP, *every_key(), *await list_guards(client)})
    refuse_managed(await read_live(client, keys), removing=True)
    agree()
    deleted: list[Key] = []
    delete_or_find = is_ours if dry_run else remove

    def step(text: str) -> AbstractContextManager[object]:
        return nullcontext() if dry_run else progress.step(text)

    async def delete(
        some_keys: Iterable[Key], ours: Callable[[Mapping[str, Any]], bool] = applied_or_labelled
    ) -> None:
        deleted.extend([key for key in some_keys if await delete_or_find(client, key, ours)])

    async def wait(what: str, missing: Callable[[], Awaitable[str]], times: int = 1) -> None:
        if not dry_run:
            await patience.until(what, missing, times)

    with step("having pods sent to the webhook no more"):
        await delete(key for key in keys if key.kind.name in (GUARD_BINDING, GUARD))
        await delete((INTERCEPTION, JUDGING))
        # Several API servers learn of the deletion one by one.
        await wait("the API server's forgetting", partial(_still_called, client), ANSWERS)
    with step("ending Fairlead's pods"):
        # They would create again what is deleted below: the certificates, the Lease.
        await delete((CONTROLLER, WEBHOOK))
        await wait("the end of Fairlead's pods", partial(_still_running, client))
    with step("deleting the rest"):
        last = (_NAMESPACE, _RUNS, *_POLICIES)
        done_or_last = {*deleted, *last}
        await delete(key for key in reversed(keys) if key not in done_or_last)
        await delete((*_SECRETS, LEASE), lambda _: True)
        if delete_runs:
            await delete([_RUNS])
        if delete_policies:
            await delete(_POLICIES)
        left = await _foreign_objects(client, deleted)
        if not left:
            await delete([_NAMESPACE])
        for key in last:
            await wait(f"the end of {key}", partial(ended, client, key))
    return UninstallResult(deleted, [*left, *await _remaining_definitions(client, deleted)])


async def _remaining_definitions(client: Client, deleted: Collection[Key]) -> list[str]:
    words = {
        _RUNS: "every Run: they stay for the next installation (--delete-runs deletes them, with "
        "all that they own)",
        **dict.fromkeys(
            _POLICIES,
            "every object of it: they stay for the next installation (--delete-policies deletes "
            "them)",
        ),
    }
    return [
        f"{key}, and {what}"
        for key, what in words.items()
        if key not in deleted and await client.find(key.path)
    ]


async def _still_called(client: Client) -> str:
    if await client.find(INTERCEPTION.path):
        return f"{INTERCEPTION} is there still"
    tried = await probe(client, "default")
    called = tried.was_answered or tried.failed
    return "the API server still calls the webhook" if called else ""


async def _still_running(client: Client) -> str:
    pods = await client.list(CollectionPath("v1", "pods", names.NAMESPACE), labelled)
    count = sum(pods.items)
    return f"{count} of them end still" if count else ""


async def _foreign_objects(client: Client, deleted: Collection[Key]) -> list[str]:
    """Objects in our namespace that are not ours; the namespace stays because of them."""
    deleted_objects = {
        (key.kind.name, key.name) for key in deleted if key.namespace == names.NAMESPACE
    }
    if not await client.find(_NAMESPACE.path):
        return []
    others: list[str] = []
    for api_version, resource, kind, usual in _LOOKED_AT:
        path = CollectionPath(api_version, resource, names.NAMESPACE)
        listing = await client.list(path, lambda live_object: live_object["metadata"])
        others += [
            f"{kind} {names.NAMESPACE}/{metadata['name']}"
            for metadata in listing.items
            if metadata["name"] not in usual
            and (kind, metadata["name"]) not in deleted_objects
            and not metadata.get("deletionTimestamp")
        ]
    return [f"{', '.join(others)}, and so the namespace: not Fairlead's"] if others else []
