"""The kinds that an API server serves, and objects that are found as kubectl finds them."""

from __future__ import annotations

import asyncio
import difflib
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import ApiPath
from webhook.dns_names import is_subdomain
from webhook.errors import ClusterError, FairleadError, NoSuch, PassOver, WrongUsage
from webhook.installation.object_kinds import Kind
from webhook.workloads.by_kind import KINDS
from webhook.workloads.object import Object, from_answer

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.kube.client import Client

# Asked first: most workloads are in these groups, and a word may mean another kind elsewhere.
_USUAL: Final = tuple(
    dict.fromkeys(("", "batch", "apps", names.GROUP, *(group for group, _ in KINDS)))
)
_GROUPS: Final = ApiPath("apis")


_TYPE: Final = re.compile(r"[A-Za-z][-A-Za-z0-9.]*")


class ObjectReference(NamedTuple):
    """An object by the word that the user gave for its kind, and its name; empty: all of them."""

    kind: str
    name: str


def parse_references(words: tuple[str, ...], *, lists: bool = False) -> list[ObjectReference]:
    """Return the objects that these words name; lists: all of one kind. Raises WrongUsage."""
    if lists:
        if len(words) != 1 or "/" in words[0]:
            raise WrongUsage("with -l and -A give a kind alone, as in `pods -l team=vision`")
        return [ObjectReference(words[0], "")]
    if all("/" in word for word in words):
        references = [ObjectReference(*word.split("/", 1)) for word in words]
    elif "/" in "".join(words):
        raise WrongUsage("give TYPE NAME..., or TYPE/NAME for each; not both")
    elif len(words) == 1:
        raise WrongUsage(
            f"{words[0]}: want a kind and a name, as in `pod train-0`, `job/train` or `job train`; "
            "or -l or -A, for all of a kind"
        )
    else:
        references = [ObjectReference(words[0], name) for name in words[1:]]
    for reference in references:
        if not _TYPE.fullmatch(reference.kind) or not is_subdomain(reference.name):
            raise WrongUsage(
                f"{reference.kind}/{reference.name}: want a kind, such as pod, job or jobset, and "
                "a name of lower case letters, digits, '-', '.'"
            )
    return list(dict.fromkeys(references))


class Discovery:
    """The kinds that the API server serves; answers are cached."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._resources: dict[str, list[dict[str, Any]]] = {}
        self._versions: dict[str, list[str]] | None = None

    async def by_word(self, word: str) -> Kind:
        """Return the kind of a word such as job, jobs or jobs.batch. Raises FairleadError, with
        similar words.
        """
        wanted, _, group = word.lower().partition(".")
        preferred = {name: versions[0] for name, versions in (await self._groups()).items()}
        usual = [preferred[name] for name in _USUAL if name in preferred]
        others = [version for name, version in preferred.items() if name not in _USUAL]
        known_words: set[str] = set()
        for versions in (usual, others):
            answers = await asyncio.gather(*map(self._of, versions))
            for version, resources in zip(versions, answers, strict=True):
                for resource in resources if group in ("", version.rpartition("/")[0]) else ():
                    short = resource.get("shortNames") or ()
                    words = {resource["name"], resource["kind"].lower(), *short}
                    if wanted in words:
                        return _served(version, resource)
                    known_words |= words
        near = difflib.get_close_matches(wanted, sorted(known_words), 3)
        hint = f". Did you mean {' or '.join(near)}?" if near else "; kubectl api-resources"
        raise FairleadError(f"{word}: the cluster does not have this kind{hint}")

    async def by_kind(self, version: str, kind: str) -> Kind | None:
        """Return the kind of an object's apiVersion and kind; None if it is not served."""
        for resource in await self._of(version):
            if resource["kind"] == kind:
                return _served(version, resource)
        return None

    async def by_groups(self, wanted: Collection[tuple[str, str]]) -> list[Kind]:
        """Return the served ones of these kinds, by group and kind, that can be listed.

        Each is in one version: in the preferred one, if that has it. Raises ClusterError.
        """
        kind_by_key: dict[tuple[str, str], Kind] = {}
        groups = {group for group, _ in wanted}
        for group, versions in (await self._groups()).items():
            for version in versions if group in groups else ():
                for resource in await self._of(version):
                    key = (group, resource["kind"])
                    if key in wanted and "list" in (resource.get("verbs") or ()):
                        kind_by_key.setdefault(key, _served(version, resource))
        return list(kind_by_key.values())

    async def _groups(self) -> dict[str, list[str]]:
        """Return the versions of each group, the preferred one first; `v1` for the core."""
        if self._versions is None:
            self._versions = {"": ["v1"]}
            for group in (await self.client.get(_GROUPS)).get("groups") or ():
                every = (group.get("preferredVersion"), *(group.get("versions") or ()))
                versions = dict.fromkeys(version["groupVersion"] for version in every if version)
                self._versions[group["name"]] = list(versions)
        return self._versions

    async def _of(self, version: str) -> list[dict[str, Any]]:
        if version not in self._resources:
            resources: list[dict[str, Any]] = []
            # A definition may be deleted between two requests; an aggregated API may be down.
            with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
                path = ApiPath.of_version(version)
                resources = (await self.client.get(path)).get("resources") or []
            self._resources[version] = [
                resource for resource in resources if "/" not in resource["name"]
            ]
        return self._resources[version]


def _served(version: str, resource: dict[str, Any]) -> Kind:
    return Kind(version, resource["kind"], resource["name"], resource.get("namespaced", True))


class NoSuchObject(NoSuch):
    """There is no such object; the text has the cure."""


async def find(
    client: Client, served: Kind, namespace: str, name: str, *, others: bool = False
) -> Object:
    """Return the object. Raises NoSuchObject, and ClusterError.

    `others`: whether the error names other objects of the namespace.
    """
    if manifest := await client.find(served.path_of(namespace, name)):
        return as_object(served, manifest)
    raise NoSuchObject(await _absent(client, served, namespace, name, others=others))


async def find_all(client: Client, served: Kind, namespace: str, labels: str) -> list[Object]:
    """Return the objects with these labels, in all namespaces if none is named.

    Raises NoSuchObject if there are none, and ClusterError.
    """
    listed = await client.list(
        served.path(namespace),
        lambda reference: as_object(served, reference),
        query={"labelSelector": labels} if labels else {},
    )
    if not listed.items:
        labelled = f" with the labels {labels}" if labels else ""
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise NoSuchObject(f"there is no {served.name}{labelled} {where}")
    return listed.items


def as_object(served: Kind, value: dict[str, Any]) -> Object:
    """Return an object of an answer, without managedFields.

    A pod keeps them: they show whether its author named its node.
    """
    if served.name != "Pod":
        metadata = {
            key: member for key, member in value["metadata"].items() if key != "managedFields"
        }
        value = {**value, "metadata": metadata}
    return from_answer(served.api_version, served.name, value)


async def _absent(client: Client, served: Kind, namespace: str, name: str, *, others: bool) -> str:
    problem = f"{served.name.lower()} {name}: not found in namespace {namespace}"
    here = sorted(listed_name for _, listed_name in await _names(client, served, namespace))
    if near := difflib.get_close_matches(name, here, 3):
        return f"{problem}. Did you mean {' or '.join(near)}?"
    elsewhere = [
        place for place, listed_name in await _names(client, served, "") if listed_name == name
    ]
    if elsewhere:
        return f"{problem}, but in {' and '.join(elsewhere[:3])}: try -n {elsewhere[0]}"
    if others and here:
        problem += f"; there {'is' if len(here) == 1 else 'are'} {', '.join(here[:5])}"
    return f"{problem}. kubectl get {served.resource} -A lists all that you may see"


async def _names(client: Client, served: Kind, namespace: str) -> list[tuple[str, str]]:
    try:
        listing = await client.list(
            served.path(namespace),
            lambda manifest: (
                str(manifest["metadata"].get("namespace", "")),
                str(manifest["metadata"]["name"]),
            ),
        )
    except ClusterError:
        return []
    return listing.items
