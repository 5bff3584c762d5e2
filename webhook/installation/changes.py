"""What an installation would take away or change in a cluster, and whether it may."""

from __future__ import annotations

from collections import Counter
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath
from webhook.applied_by import kept_by_helm, manager_of
from webhook.errors import ClusterError, InstallationError
from webhook.installation.apply import applied, list_guards
from webhook.installation.foreign_changes import (
    content,
    foreign_losses,
    foreign_paths,
    last_writer,
    returning,
)
from webhook.installation.manifests import INTERCEPTION, WEBHOOK, every_key
from webhook.installation.object_kinds import (
    CONFIGURATION,
    CRD,
    DEPLOYMENT,
    GUARD_BINDING,
    NEEDED,
    VALIDATING,
    containers_of,
    key_of,
)
from webhook.installation.policy_plan import of_key
from webhook.installation.probe import describe_unsent
from webhook.installation.rights import Right, is_allowed
from webhook.interception import OWN_SUFFIX
from webhook.shortening import first_few
from webhook.suspension import parse_suspension
from webhook.turns import gather_some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from webhook.applied_by import Applier
    from webhook.installation.object_kinds import Key
    from webhook.installation.restoring import DryRuns
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_SHOWN: Final = 3
CONCURRENT_REQUESTS: Final = 8
_DRY_RUN: Final = {
    "fieldManager": names.INSTALL_MANAGER,
    "fieldValidation": "Strict",
    "dryRun": "All",
}
# Others, such as a conflict or a webhook that does not answer, may be over when it is written.
_REFUSED: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)


async def read_live(client: Client, keys: Iterable[Key]) -> dict[Key, Json]:
    """Return the objects of these keys that exist, in order. Raises ClusterError."""
    object_by_key = {key: await client.find(key.path) for key in sorted(keys)}
    return {
        key: live_object for key, live_object in object_by_key.items() if live_object is not None
    }


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
    marks = {key: mark for key, live_object in live.items() if (mark := manager_of(live_object))}
    if all(kept_by_helm(live[key]) for key in marks):
        return
    counts: Counter[Applier] = Counter(marks.values())
    parts = []
    for applier, count in counts.most_common():
        managed_keys = [str(key) for key, mark in marks.items() if mark == applier]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        way = f"Remove with: {applier.removal()}" if removing else None
        way = way or f"Apply with: {applier.command()}"
        parts.append(f"{applier} manages {', '.join(managed_keys[:_SHOWN])}{more}. {way}")
    raise InstallationError(f"{'; '.join(parts)}. Nothing has been changed")


def refuse_changed(before: Objects, now: Objects, *, whole: bool = True) -> None:
    """Raise InstallationError if an object is not as it was read before.

    whole: nothing has been written so far. A caBundle and what a status says do not count.
    """
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if (old and content(old)) != (new and content(new)):
            what = "has been deleted" if new is None else "has been changed"
            by = f" by {last_writer(new)}" if new else ""
            end = "Nothing has been changed" if whole else "Nothing is undone"
            raise InstallationError(
                f"{key} {what}{by} since it was read. {end}: look at what was done there, and "
                "give the command again"
            )


async def find_obstacles(
    client: Client, dry_runs: DryRuns, live: Objects, wanted: Objects, namespace: str
) -> list[str]:
    """Return why an installation of the wanted objects would stop half way, each with its cure.

    That is kinds that the API server does not serve, rights that the caller lacks, a namespace for
    the trial whose pods are not sent, and programs and configurations that the API server refuses:
    they are written when all else is there. Raises ClusterError.
    """
    kinds = dict.fromkeys(key.kind for key in wanted)
    defined = {key.name for key in wanted if key.kind.name == CRD}
    obstacles = []
    for version, some in groupby(kinds, key=lambda kind: kind.api_version):
        asked = [kind for kind in some if kind.definition not in defined]
        listed = await client.find(ApiPath.of_version(version)) if asked else None
        served = {resource["name"] for resource in (listed or {}).get("resources") or ()}
        if missing := [kind.name for kind in asked if kind.resource not in served]:
            cure = NEEDED.get(version, "install what serves it")
            obstacles.append(f"the cluster does not serve {', '.join(missing)} ({version}): {cure}")
    rights = dict.fromkeys(
        Right(verb, kind.group, kind.resource, namespace=key.namespace)
        for key in wanted
        for kind in (key.kind,)
        for verb in (("patch",) if key in live else ("create", "patch"))
    )

    allowed = await gather_some(CONCURRENT_REQUESTS, partial(is_allowed, client), rights)
    if missing := [str(right) for right, has in zip(rights, allowed, strict=True) if not has]:
        obstacles.append(
            f"you may not {first_few(missing, _SHOWN)}: an installation needs an administrator's "
            "rights: `kubectl auth can-i '*' '*'`"
        )
    trial = await client.find(key_of("Namespace", namespace).path)
    labels = ((trial or {}).get("metadata") or {}).get("labels") or {}
    if unsent := describe_unsent(wanted[INTERCEPTION]["webhooks"], namespace, labels):
        obstacles.append(unsent)
    # Without kinds or rights, that is what each dry run would say.
    return obstacles or await _find_refusals(client, dry_runs, live, wanted)


async def _find_refusals(
    client: Client, dry_runs: DryRuns, live: Objects, wanted: Objects
) -> list[str]:
    """Return which programs and later objects the API server refuses, by dry runs.

    Nothing is known of objects in a namespace that does not exist yet.
    """
    namespaces = {"", *(key.name for key in live if key.kind.name == "Namespace")}

    async def refusal(key: Key) -> str:
        try:
            if key in live:
                await dry_runs.foresee(key, live[key], wanted[key])
            else:
                await client.patch(key.path, wanted[key], "apply", query=_DRY_RUN)
        except ClusterError as error:
            if error.status not in _REFUSED:
                return ""
            return f"{key} would be refused: {error.why}"
        return ""

    last = [key for key in wanted if key.rank >= WEBHOOK.rank and key.namespace in namespaces]
    return list(filter(None, await gather_some(CONCURRENT_REQUESTS, refusal, last)))


async def read_losses(
    dry_runs: DryRuns,
    live: Objects,
    wanted: Objects,
    last: Objects | None = None,
    kept: Collection[Key] = (),
) -> list[str]:
    """Return what an installation takes away or changes, a line for each.

    That is what its options take away, and all that others wrote or removed. What is kept stays as
    it is. last: the objects as they were installed last time, if that is known. Raises
    ClusterError, and InstallationError if the API server refuses a write.
    """
    losses = []
    for key, live_object in live.items():
        if key in kept:
            continue
        texts = _option_losses(key, live_object, wanted.get(key))
        if key in wanted:
            more = await _foreign_losses(dry_runs, key, live_object, wanted[key], last or {})
            texts |= {path: text for path, text in more.items() if not _is_in(path, texts)}
        losses += [_line(key, text) for text in texts.values()]
    return losses


async def _foreign_losses(
    dry_runs: DryRuns, key: Key, live: Json, wanted: Json, last: Objects
) -> dict[str, str]:
    losses = returning(live, last[key], wanted) if key in last else {}
    if foreign_paths(live):
        try:
            losses |= foreign_losses(live, await dry_runs.foresee(key, live, wanted))
        except ClusterError as error:
            if error.status is None:
                raise
            if error.status == HTTPStatus.FORBIDDEN and "cannot patch" in error.words:
                # Only `--dry-run` comes so far without the right to write.
                losses[""] = f"what becomes of others' fields is not known: {error.why}"
                return losses
            raise InstallationError(
                f"{key} cannot be written: {error.why}. Nothing has been changed"
            ) from error
    return losses


def _is_in(path: str, lines: Iterable[str]) -> bool:
    """Return whether one of the lines is about the same field, a part of it, or its whole."""
    fields = [line.partition(" ")[0] for line in lines]
    if not path:
        return False
    return any(path.startswith(field) or field.startswith(path) for field in fields)


def _line(key: Key, text: str) -> str:
    return f"{key} {text}" if text.startswith(("is ", "loses ")) else f"{key}: {text}"


def _option_losses(key: Key, live: Json, wanted: Json | None) -> dict[str, str]:
    """Return the lines by the path of what they are about.

    Objects of an earlier `fairlead install` that are not wanted are deleted. What is only added is
    left out.
    """
    if wanted is None:
        return {"": "is deleted"} if applied(live) else {}
    losses = {}
    new = {path: value for path, _, value in _facts(key, wanted)}
    for path, fact, value in _facts(key, live):
        if path not in new:
            losses[path] = f"loses {fact}"
        elif new[path] != value:
            losses[path] = f"{fact} changes from {value} to {new[path]}"
    if key.kind.name == CONFIGURATION and (disabled := parse_suspension(live)):
        until = f" until {disabled.until.isoformat()}" if disabled.until else ""
        losses["disabled"] = f"it is disabled{until} (fairlead webhook disable), and is enabled"
    return losses


def _facts(key: Key, document: Json) -> Iterator[tuple[str, str, str]]:
    """Yield what the options decide of an object: its path, what it is, and its value."""
    kind = key.kind.name
    if kind == DEPLOYMENT:
        yield "spec.replicas", "replicas", str(document["spec"].get("replicas", 1))
    yield from _container_facts(document)
    if kind in (CONFIGURATION, VALIDATING):
        for entry in document.get("webhooks") or ():
            # Entries of others stay.
            if entry["name"].endswith(OWN_SUFFIX):
                path = f"webhooks[{entry['name']}].failurePolicy"
                yield path, f"entry {entry['name']}", f"failurePolicy {entry['failurePolicy']}"
    elif kind == GUARD_BINDING:
        actions = ", ".join(document["spec"].get("validationActions") or ())
        yield "spec.validationActions", "validationActions", actions
    elif kind == "ConfigMap":
        for name in document.get("data") or ():
            yield f"data[{name}]", f"file {name}", ""


def _container_facts(document: Json) -> Iterator[tuple[str, str, str]]:
    job = "jobTemplate.spec." if "jobTemplate" in (document.get("spec") or {}) else ""
    for container in containers_of(document):
        name = container["name"]
        path = f"spec.{job}template.spec.containers[{name}]"
        yield f"{path}.image", f"image of {name}", container["image"]
        values: dict[str, list[str]] = {}
        for argument in container.get("args") or ():
            option, _, value = argument.partition("=")
            values.setdefault(option, []).append(value)
        for option, given in values.items():
            yield f"{path}.args {option}", f"argument {option} of {name}", " ".join(given)
