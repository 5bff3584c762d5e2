"""Find live objects as kubectl does, the owner of a live pod, and the live pods of an object."""

from __future__ import annotations

import asyncio
import difflib
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.dns_names import is_subdomain
from webhook.errors import ClusterError, FairleadError
from webhook.workloads.by_kind import KINDS
from webhook.workloads.object import from_answer
from webhook.workloads.stored_pod import is_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.workloads.object import Object

# Asked first: most workloads are in these groups, and a word may mean another kind elsewhere.
_USUAL: Final = tuple(
    dict.fromkeys(("", "batch", "apps", names.GROUP, *(group for group, _ in KINDS)))
)
_TYPE: Final = re.compile(r"[A-Za-z][-A-Za-z0-9.]*")


class ObjectReference(NamedTuple):
    """An object by the word that the user gave for its kind, and its name."""

    kind: str
    name: str


def parse_references(words: tuple[str, ...]) -> list[ObjectReference]:
    """Return the objects that the words of a command line name. Raises UsageError."""
    if all("/" in word for word in words):
        found = [ObjectReference(*word.split("/", 1)) for word in words]
    elif "/" in "".join(words):
        raise click.UsageError("give TYPE NAME..., or TYPE/NAME for each; not both")
    elif len(words) == 1:
        raise click.UsageError(
            f"{words[0]}: want a kind and a name, as in `pod train-0`, `job/train` or `job train`"
        )
    else:
        found = [ObjectReference(words[0], name) for name in words[1:]]
    for each in found:
        # Nothing else may become part of a path or a query.
        if not _TYPE.fullmatch(each.kind) or not is_subdomain(each.name):
            raise click.UsageError(
                f"{each.kind}/{each.name}: want a kind, such as pod, job or jobset, and a name of "
                "lower case letters, digits, '-', '.'"
            )
    return list(dict.fromkeys(found))


class NoSuchKind(FairleadError):
    """The cluster has no kind of that name; the text names similar ones."""


class Served(NamedTuple):
    """A kind as the API server serves it; `version` is its apiVersion."""

    version: str
    kind: str
    resource: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the collection in a namespace (all, if none is named), or the object `name` in
        it."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.resource}" + (f"/{name}" if name else "")


class Discovery:
    """The kinds that the API server serves; answers are cached."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._resources: dict[str, list[dict[str, Any]]] = {}
        self._preferred: dict[str, str] | None = None

    async def by_word(self, word: str) -> Served:
        """Return the kind of a word such as job, jobs or jobs.batch. Raises NoSuchKind,
        ClusterError.
        """
        wanted, _, group = word.lower().partition(".")
        preferred = await self._versions()
        usual = [preferred[each] for each in _USUAL if each in preferred]
        others = [version for name, version in preferred.items() if name not in _USUAL]
        known: set[str] = set()
        for versions in (usual, others):
            answers = await asyncio.gather(*map(self._of, versions))
            for version, resources in zip(versions, answers, strict=True):
                for resource in resources if group in ("", _group(version)) else ():
                    words = set(_names_of(resource))
                    if wanted in words:
                        return _served(version, resource)
                    known |= words
        near = difflib.get_close_matches(wanted, sorted(known), 3)
        hint = f". Did you mean {' or '.join(near)}?" if near else "; kubectl api-resources"
        raise NoSuchKind(f"{word}: the cluster does not have this kind{hint}")

    async def by_kind(self, version: str, kind: str) -> Served | None:
        """Return the kind of an object's apiVersion and kind; None if it is not served."""
        for resource in await self._of(version):
            if resource["kind"] == kind:
                return _served(version, resource)
        return None

    async def _versions(self) -> dict[str, str]:
        """Return the preferred version of each group, `v1` for the core."""
        if self._preferred is None:
            groups = (await self._client.get("/apis")).get("groups") or ()
            self._preferred = {"": "v1"}
            for each in groups:
                first = (each.get("preferredVersion") or each["versions"][0])["groupVersion"]
                self._preferred[each["name"]] = first
        return self._preferred

    async def _of(self, version: str) -> list[dict[str, Any]]:
        if version not in self._resources:
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                found = (await self._client.get(path)).get("resources") or []
            except ClusterError as error:
                # A definition may be deleted between two requests; an aggregated API may be down.
                if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
                    raise
                found = []
            self._resources[version] = [each for each in found if "/" not in each["name"]]
        return self._resources[version]


def _group(version: str) -> str:
    return version.rpartition("/")[0]


def _names_of(resource: dict[str, Any]) -> Iterator[str]:
    yield resource["name"]
    yield resource["kind"].lower()
    yield from resource.get("shortNames") or ()


def _served(version: str, resource: dict[str, Any]) -> Served:
    return Served(version, resource["kind"], resource["name"], resource.get("namespaced", True))


class NoSuchObject(FairleadError):
    """There is no such object, or it may not be read; the text has the cure."""


async def find(client: Client, served: Served, namespace: str, name: str) -> Object:
    """Return the object. Raises NoSuchObject, also if it may not be read, and ClusterError."""
    try:
        return as_object(served, await client.get(served.path(namespace, name)))
    except ClusterError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            raise NoSuchObject(_forbidden(error, served, namespace)) from error
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    raise NoSuchObject(await _absent(client, served, namespace, name))


def as_object(served: Served, value: dict[str, Any]) -> Object:
    """Return an object of an answer, without managedFields.

    A pod keeps them: they show whether its author named its node.
    """
    if served.kind != "Pod":
        metadata = {key: each for key, each in value["metadata"].items() if key != "managedFields"}
        value = {**value, "metadata": metadata}
    return from_answer(served.version, served.kind, value)


def _forbidden(error: ClusterError, served: Served, namespace: str) -> str:
    where = f" -n {namespace}" if namespace and served.namespaced else ""
    return (
        f"{error.words or error}; check your rights with: kubectl auth can-i "
        f"get {served.resource}{where}"
    )


async def _absent(client: Client, served: Served, namespace: str, name: str) -> str:
    word = served.kind.lower()
    problem = f"{word} {name}: not found in namespace {namespace}"
    here = await _names(client, served, namespace)
    if near := difflib.get_close_matches(name, [one for _, one in here], 3):
        return f"{problem}. Did you mean {' or '.join(near)}?"
    elsewhere = [place for place, one in await _names(client, served, "") if one == name]
    if elsewhere:
        return f"{problem}, but in {' and '.join(elsewhere[:3])}: try -n {elsewhere[0]}"
    return f"{problem}. kubectl get {served.resource} -A lists all that you may see"


async def _names(client: Client, served: Served, namespace: str) -> list[tuple[str, str]]:
    """Namespaces and names of the objects that may be listed."""
    try:
        found = await client.list(
            served.path(namespace),
            lambda one: (str(one["metadata"].get("namespace", "")), str(one["metadata"]["name"])),
        )
    except ClusterError:
        return []
    return found.items


def controller_of(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the owner that manages an object; None if there is none."""
    owners = metadata.get("ownerReferences")
    return next((each for each in owners or () if each.get("controller")), None)


class MakerUnreadable(FairleadError):
    """The pod may have an owner that the user may not read."""


async def maker_of(client: Client, discovery: Discovery, pod: Object) -> Object | None:
    """Return the object that created the pod; None if it does not exist any more.

    Raises MakerUnreadable and ClusterError.

    The author of the pod chose the owner's name, and the API server accepts any text. Only valid
    names become part of a path, because it is read with the user's rights.
    """
    owner = controller_of(pod.metadata)
    if owner is None or not is_named(owner):
        return None
    try:
        served = await discovery.by_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
        if served is None:
            return None
        found = as_object(
            served, await client.get(served.path(pod.namespace, str(owner.get("name"))))
        )
    except ClusterError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            kind, name = owner.get("kind"), owner.get("name")
            raise MakerUnreadable(
                f"you may not get {kind}/{name} in {pod.namespace}, which made {pod.title}: what "
                "its author wrote is not known for sure; kubectl auth can-i get "
                f"{str(kind).lower()} -n {pod.namespace}"
            ) from error
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    # Another object may have the same name now.
    return found if found.metadata.get("uid") == owner.get("uid") else None


def is_named(owner: Mapping[str, Any]) -> bool:
    """Return whether apiVersion and name are valid as parts of a path."""
    group, _, version = str(owner.get("apiVersion")).rpartition("/")
    return all(map(is_subdomain, (group or "core", version, str(owner.get("name")))))


async def pods_of(
    client: Client, discovery: Discovery, source: Object, notes: list[str]
) -> list[Object]:
    """Return the live pods of an object, created by it or by objects that it created; sorted by
    name.

    They are found by their owners and the owners of these, of any kind. Leaves out pods that have
    ended or are being deleted. Kinds that may not be listed are added to `notes`. Raises
    ClusterError.
    """
    served = await discovery.by_word("pods")
    found = await client.list(
        served.path(source.namespace),
        lambda pod: as_object(served, pod) if controller_of(pod["metadata"]) else None,
    )
    pods = [pod for pod in found.items if pod is not None and not is_over(pod.value)]
    owners = [owner for pod in pods if (owner := controller_of(pod.metadata))]
    above = await _owners_of(client, discovery, source, owners, notes)
    uid = source.metadata.get("uid")
    made = [
        pod
        for pod, owner in zip(pods, owners, strict=True)
        if uid in _chain(str(owner.get("uid")), above)
    ]
    return sorted(made, key=lambda pod: pod.name)


async def _owners_of(
    client: Client,
    discovery: Discovery,
    source: Object,
    owners: Sequence[Mapping[str, Any]],
    notes: list[str],
) -> dict[str, str]:
    """From the uid of an owner to that of its own, up to the source; kind by kind."""
    above: dict[str, str] = {}
    looked: set[tuple[str, str]] = set()
    while owners:
        wanted = {str(each.get("uid")) for each in owners} - {source.metadata.get("uid")}
        kinds = {
            (str(each.get("apiVersion")), str(each.get("kind")))
            for each in owners
            if each.get("uid") in wanted and is_named(each)
        }
        owners = []
        for version, kind in sorted(kinds - looked):
            listed = await _of_kind(client, discovery, version, kind, source, notes)
            for metadata in listed:
                owner = controller_of(metadata)
                if owner is not None and metadata.get("uid") in wanted:
                    above[str(metadata["uid"])] = str(owner.get("uid"))
                    owners.append(owner)
        looked |= kinds
    return above


async def _of_kind(
    client: Client,
    discovery: Discovery,
    version: str,
    kind: str,
    source: Object,
    notes: list[str],
) -> Sequence[Mapping[str, Any]]:
    """Return the metadata of all objects of a kind in the source's namespace, if they may be
    listed.
    """
    try:
        served = await discovery.by_kind(version, kind)
        if served is None or not served.namespaced:
            return []
        return (await client.list(served.path(source.namespace), lambda one: one["metadata"])).items
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            raise
        if error.status == HTTPStatus.FORBIDDEN:
            notes.append(
                f"you may not list {kind} objects in {source.namespace}, so it is unknown "
                f"whether their pods belong to {source.title}"
            )
        return []


def _chain(uid: str, above: Mapping[str, str]) -> set[str]:
    """Return an owner's uid, and those of all owners above it."""
    found: set[str] = set()
    while uid and uid not in found:
        found.add(uid)
        uid = above.get(uid, "")
    return found
