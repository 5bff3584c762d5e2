"""From a word for a kind to how the API server serves it: pod, po, Job, jobs.batch, run."""

from __future__ import annotations

import asyncio
import difflib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError, FairleadError
from webhook.workloads.by_kind import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.kube.client import Client

# Asked first, for most that make pods are of these, and a word may mean something else elsewhere.
_USUAL: Final = tuple(
    dict.fromkeys(("", "batch", "apps", names.GROUP, *(group for group, _ in KINDS)))
)


class NoSuchKind(FairleadError):
    """The cluster knows no kind by that word; the text says which it may be."""


class Served(NamedTuple):
    """A kind as the API server serves it; `version` is its apiVersion."""

    version: str
    kind: str
    resource: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The collection in a namespace (all, if none is named), or the object `name` in it."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{within}/{self.resource}" + (f"/{name}" if name else "")


class Discovery:
    """What the API server says of its kinds; each answer is remembered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._resources: dict[str, list[dict[str, Any]]] = {}
        self._preferred: dict[str, str] | None = None

    async def by_word(self, word: str) -> Served:
        """The kind that a person means. Raises NoSuchKind and ClusterError."""
        wanted, _, group = word.lower().partition(".")
        preferred = await self._versions()
        usual = [preferred[each] for each in _USUAL if each in preferred]
        others = [version for name, version in preferred.items() if name not in _USUAL]
        known: set[str] = set()
        for versions in (usual, others):
            answers = await asyncio.gather(*map(self._of, versions))
            for version, resources in zip(versions, answers, strict=True):
                for resource in resources if group in ("", _group(version)) else ():
                    words = set(_words(resource))
                    if wanted in words:
                        return _served(version, resource)
                    known |= words
        near = difflib.get_close_matches(wanted, sorted(known), 3)
        hint = f". Did you mean {' or '.join(near)}?" if near else "; kubectl api-resources"
        raise NoSuchKind(f"{word}: the cluster knows no such kind{hint}")

    async def by_kind(self, version: str, kind: str) -> Served | None:
        """The kind of an object's apiVersion and kind; None if it is not served."""
        for resource in await self._of(version):
            if resource["kind"] == kind:
                return _served(version, resource)
        return None

    async def _versions(self) -> dict[str, str]:
        """The preferred version of each group, `v1` for the core."""
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
                # A definition may be deleted between two questions; an aggregated API may be down.
                if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
                    raise
                found = []
            self._resources[version] = [each for each in found if "/" not in each["name"]]
        return self._resources[version]


def _group(version: str) -> str:
    return version.rpartition("/")[0]


def _words(resource: dict[str, Any]) -> Iterator[str]:
    yield resource["name"]
    yield resource["kind"].lower()
    yield from resource.get("shortNames") or ()


def _served(version: str, resource: dict[str, Any]) -> Served:
    return Served(version, resource["kind"], resource["name"], resource.get("namespaced", True))
