"""What an installation would take away or change in a cluster, and whether it may."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath
from webhook.applied_by import kept_by_helm, manager_of
from webhook.errors import InstallationError
from webhook.installation.apply import applied, list_guards
from webhook.installation.manifests import every_key
from webhook.installation.object_kinds import (
    CONFIGURATION,
    CRD,
    DEPLOYMENT,
    GUARD_BINDING,
    NEEDED,
    VALIDATING,
    containers_of,
)
from webhook.installation.policy_plan import of_key
from webhook.installation.rights import Right, is_allowed
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.applied_by import Applier
    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_SHOWN: Final = 3
# Concurrent requests.
_AT_ONCE: Final = 8


async def read_live(client: Client, keys: Iterable[Key]) -> dict[Key, Json]:
    """Return the objects of these keys that exist, in order. Raises ClusterError."""
    found = {key: await client.find(key.path) for key in sorted(keys)}
    return {key: each for key, each in found.items() if each is not None}


async def read_installed(client: Client, objects: Iterable[Key]) -> dict[Key, Json]:
    """Return what is there of these objects, and of all others of an installation.

    Policies are left out: they have a plan of their own.
    """
    some = {key for key in objects if not of_key(key)}
    return await read_live(client, {*some, *every_key(), *await list_guards(client)})


def refuse_managed(live: Objects, *, removing: bool = False) -> None:
    """Raise InstallationError if another tool would write any of these objects again.

    removing: the message names the command that removes them. Definitions that Helm has kept from
    a release of before are free to take.
    """
    marks = {key: mark for key, each in live.items() if (mark := manager_of(each))}
    if all(kept_by_helm(live[key]) for key in marks):
        return
    counts: Counter[Applier] = Counter(marks.values())
    parts = []
    for applier, count in counts.most_common():
        own = [str(key) for key, mark in marks.items() if mark == applier]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        way = f"Remove with: {applier.removal()}" if removing else None
        way = way or f"Apply with: {applier.command()}"
        parts.append(f"{applier} manages {', '.join(own[:_SHOWN])}{more}. {way}")
    raise InstallationError(f"{'; '.join(parts)}. Nothing has been changed")


async def find_obstacles(client: Client, live: Objects, wanted: Collection[Key]) -> list[str]:
    """Return why an installation of the wanted objects would stop half way, each with its cure.

    That is kinds that the API server does not serve, and rights that the caller lacks, except what
    it checks only when an object is written. Raises ClusterError.
    """
    kinds = dict.fromkeys(key.kind for key in wanted)
    defined = {key.name for key in wanted if key.kind.name == CRD}
    found = []
    for version, some in groupby(kinds, key=lambda kind: kind.api_version):
        asked = [kind for kind in some if kind.definition not in defined]
        listed = await client.find(ApiPath.of_version(version)) if asked else None
        served = {each["name"] for each in (listed or {}).get("resources") or ()}
        if missing := [kind.name for kind in asked if kind.resource not in served]:
            cure = NEEDED.get(version, "install what serves it")
            found.append(f"the cluster does not serve {', '.join(missing)} ({version}): {cure}")
    limit = asyncio.Semaphore(_AT_ONCE)
    rights = dict.fromkeys(
        Right(verb, kind.group, kind.resource, namespace=key.namespace)
        for key in wanted
        for kind in (key.kind,)
        for verb in (("patch",) if key in live else ("create", "patch"))
    )

    async def lacks(right: Right) -> bool:
        async with limit:
            return not await is_allowed(client, right)

    lacking = await asyncio.gather(*map(lacks, rights))
    if missing := [str(right) for right, lacks_it in zip(rights, lacking, strict=True) if lacks_it]:
        found.append(
            f"you may not {first_few(missing, _SHOWN)}: an installation needs an administrator's "
            "rights: `kubectl auth can-i '*' '*'`"
        )
    return found


def losses(live: Objects, wanted: Objects, kept: Collection[Key] = ()) -> list[str]:
    """Return what an installation of the wanted objects takes away or changes, a line for each.

    Objects of an earlier `fairlead install` that are not wanted are deleted. What is only added is
    left out, and what is kept as it is.
    """
    found = []
    for key, each in live.items():
        if key in kept:
            continue
        if key not in wanted:
            if applied(each):
                found.append(f"{key} is deleted")
            continue
        new = dict(_facts(key, wanted[key]))
        for fact, value in _facts(key, each):
            if fact not in new:
                found.append(f"{key} loses {fact}")
            elif new[fact] != value:
                found.append(f"{key}: {fact} changes from {value} to {new[fact]}")
    return found


def _facts(key: Key, found: Json) -> Iterator[tuple[str, str]]:
    """Yield what matters of an object to those who use it, each with its value."""
    kind = key.kind.name
    if kind == DEPLOYMENT:
        yield "replicas", str(found["spec"].get("replicas", 1))
    yield from _container_facts(found)
    if kind in (CONFIGURATION, VALIDATING):
        for entry in found.get("webhooks") or ():
            # Entries of others stay.
            if entry["name"].endswith(f".{names.GROUP}"):
                yield f"entry {entry['name']}", f"failurePolicy {entry['failurePolicy']}"
    elif kind == GUARD_BINDING:
        yield "validationActions", ", ".join(found["spec"].get("validationActions") or ())
    elif kind == "ConfigMap":
        yield from ((f"file {name}", "") for name in found.get("data") or ())


def _container_facts(found: Json) -> Iterator[tuple[str, str]]:
    for container in containers_of(found):
        name = container["name"]
        yield f"image of {name}", container["image"]
        values: dict[str, list[str]] = {}
        for argument in container.get("args") or ():
            option, _, value = argument.partition("=")
            values.setdefault(option, []).append(value)
        for option, given in values.items():
            yield f"argument {option} of {name}", " ".join(given)
