"""Takes an installation out of a cluster: first what stands in the way of pods, then the rest."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import read
from webhook.installation.from_files import CONFIG_MAP
from webhook.installation.kinds import (
    CONFIGURATION,
    CRD,
    GUARD,
    GUARD_BINDING,
    VALIDATING,
    key_of,
)
from webhook.installation.policies import of_key
from webhook.installation.probe import ANSWERS, probe
from webhook.installation.removal import ended, labelled, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.installation.kinds import Key
    from webhook.installation.patience import Patience
    from webhook.installation.progress import Progress
    from webhook.kube.client import Client

    Json = dict[str, Any]

_NAMESPACE: Final = key_of("Namespace", names.NAMESPACE)
_RUNS: Final = key_of(CRD, f"{names.RUNS}.{names.GROUP}")
_POLICIES: Final = tuple(
    key_of(CRD, f"{resource}.{names.GROUP}")
    for resource in (names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES, names.PLACEMENT_EXCEPTIONS)
)
# What the programs make beside the manifests, or cert-manager for them. By such names they are
# ours.
_SECRETS: Final = (
    names.AUTHORITY_SECRET,
    names.SERVING_SECRET,
    "fairlead-cert-manager-authority",
)
_LEASE: Final = (
    f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.CONTROLLER}"
)
# Kinds of which people may have put their own into our namespace. (Each namespace has an account
# and a ConfigMap of Kubernetes' own.)
_LOOKED_AT: Final = (
    ("/api/v1", "configmaps", "ConfigMap", ("kube-root-ca.crt",)),
    ("/api/v1", "secrets", "Secret", ()),
    ("/api/v1", "services", "Service", ()),
    ("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim", ()),
    ("/apis/apps/v1", "deployments", "Deployment", ()),
    ("/apis/apps/v1", "statefulsets", "StatefulSet", ()),
    ("/apis/apps/v1", "daemonsets", "DaemonSet", ()),
    ("/apis/batch/v1", "jobs", "Job", ()),
    ("/apis/batch/v1", "cronjobs", "CronJob", ()),
)


class Left(NamedTuple):
    """What was deleted, and what was left, each with the reason in words."""

    deleted: Sequence[Key]
    left: Sequence[str]


async def uninstall(
    client: Client,
    keys: Iterable[Key],
    patience: Patience,
    progress: Progress,
    *,
    delete_runs: bool = False,
    delete_policies: bool = False,
    probe_in: str = "default",
) -> Left:
    """Delete those of `keys` that are there and ours, and what the programs have made.

    The guards go first and then the webhook configurations, and nothing else goes before the API
    server has forgotten them: until then a pod of a run, and every policy, would be refused for
    want of an answer. The definition of Runs stays, and with it every Run, unless `delete_runs`;
    those of policies and classes stay with their objects, unless `delete_policies`. Raises
    ClusterError, and NotInTime.
    """
    doomed = sorted({CONFIG_MAP, *(key for key in keys if not of_key(key))})
    deleted: list[Key] = []

    async def away(some: Iterable[Key]) -> None:
        deleted.extend([key for key in some if await remove(client, key)])

    with progress.step("having pods sent to the webhook no more"):
        await away(key for key in doomed if key.kind.name in (GUARD_BINDING, GUARD))
        await away(key for key in doomed if key.kind.name in (CONFIGURATION, VALIDATING))
        for key in doomed:
            if key.kind.name == CONFIGURATION:
                await _forgotten(client, key, patience, probe_in)
    with progress.step("ending Fairlead's pods"):
        # They would make anew what is deleted below: the certificates, the Lease.
        await away(key for key in doomed if key.kind.name == "Deployment")
        await patience.until("the end of Fairlead's pods", lambda: _running(client))
    with progress.step("deleting the rest"):
        late = {_NAMESPACE, _RUNS, *_POLICIES}
        early = {*deleted, *late}
        await away(key for key in reversed(doomed) if key not in early)
        for name in _SECRETS:
            key = key_of("Secret", name, names.NAMESPACE)
            if await remove(client, key, lambda _: True):
                deleted.append(key)
        await _delete_lease(client)
        if delete_runs:
            await away([_RUNS])
        if delete_policies:
            await away(_POLICIES)
        left = await _others(client)
        if not left:
            await away([_NAMESPACE])
        for key in late:
            await patience.until(f"the end of {key}", partial(ended, client, key))
    return Left(deleted, [*left, *await _kept(client)])


async def _kept(client: Client) -> list[str]:
    """The definitions that are there still, each with what would take it away."""
    words = {
        _RUNS: "every Run: they stay for the next installation (--delete-runs deletes them, with "
        "all that they own)",
        **dict.fromkeys(
            _POLICIES,
            "every object of it: they stay for the next installation (--delete-policies deletes "
            "them)",
        ),
    }
    return [f"{key}, and {what}" for key, what in words.items() if await read(client, key.path)]


async def _forgotten(client: Client, key: Key, patience: Patience, probe_in: str) -> None:
    quiet = 0

    async def missing() -> str:
        nonlocal quiet
        if await read(client, key.path):
            return f"{key} is there still"
        tried = await probe(client, probe_in)
        # Several API servers forget it one by one.
        quiet = 0 if tried.answered or tried.failed else quiet + 1
        return "" if quiet >= ANSWERS else "the API server asks the webhook still"

    await patience.until("the API server's forgetting", missing)


async def _running(client: Client) -> str:
    pods = await client.list(f"/api/v1/namespaces/{names.NAMESPACE}/pods", labelled)
    count = sum(pods.items)
    return f"{count} of them end still" if count else ""


async def _delete_lease(client: Client) -> None:
    try:
        await client.delete(_LEASE)
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise


async def _others(client: Client) -> list[str]:
    """What is in our namespace and not ours: with it the namespace stays."""
    if not await read(client, _NAMESPACE.path):
        return []
    others: list[str] = []
    for group, resource, kind, usual in _LOOKED_AT:
        found = await client.list(
            f"{group}/namespaces/{names.NAMESPACE}/{resource}", lambda each: each["metadata"]
        )
        others += [
            f"{kind} {names.NAMESPACE}/{each['name']}"
            for each in found.items
            if each["name"] not in usual and not each.get("deletionTimestamp")
        ]
    return [f"{', '.join(others)}, and so the namespace: not Fairlead's"] if others else []
