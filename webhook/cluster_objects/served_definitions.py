"""The definitions as a cluster has them, compared with those of this version."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

import webhook
from webhook import names
from webhook.api_paths import CollectionPath
from webhook.crd.comparison import Comparison, compare, newer_parts
from webhook.errors import ClusterError
from webhook.kube.client import METADATA
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.kube.client import Client

    Json = Mapping[str, Any]

_MOST_NAMED: Final = 3
OLDER_CURE: Final = "use the command of the version that the cluster runs"
DEFINITIONS: Final = CollectionPath("apiextensions.k8s.io/v1", "customresourcedefinitions")
_IN_MEMORY: Final = {"resourceVersion": "0"}
CURE: Final = "apply those of this version: fairlead generate schema crd | kubectl apply -f -"
FORBIDDEN: Final = (
    "whether the cluster's definitions are as new as this version is not known: this account may "
    "not get them; apply the roles of this version"
)


class ServedDefinition(NamedTuple):
    """One definition. identity: its uid and generation; None if the cluster does not have it.

    both: the own one and that of the cluster, if they differ.
    """

    identity: tuple[str, int] | None
    comparison: Comparison
    both: tuple[Json, Json] | None = None

    @property
    def drops(self) -> bool:
        """Whether there are objects, and the API server drops fields of this version from them."""
        return self.identity is not None and bool(self.comparison.dropped)


class ServedDefinitions:
    """Reads definitions of the cluster. `make_definitions` makes those of this version."""

    def __init__(self, client: Client, make_definitions: Callable[[], Iterable[Json]]) -> None:
        self._client = client
        self._make_own = make_definitions
        self._own: Mapping[str, Json] = {}
        self._known: dict[str, ServedDefinition] = {}

    async def read(self) -> Mapping[str, ServedDefinition]:
        """Read all definitions live, by name. Raises ClusterError.

        What is read is what the API server stores. It serves by a new definition at once, and by a
        changed one a moment later.
        """
        definitions = await self._definitions()
        served_definitions = await asyncio.gather(*(self.read_one(name) for name in definitions))
        return dict(zip(definitions, served_definitions, strict=True))

    async def _definitions(self) -> Mapping[str, Json]:
        if not self._own:
            # It takes a tenth of a second.
            made = await asyncio.to_thread(lambda: [*self._make_own()])
            self._own = {str(definition["metadata"]["name"]): definition for definition in made}
        return self._own

    async def read_one(self, name: str) -> ServedDefinition:
        """Read the definition of this name. Raises ClusterError."""
        definition = (await self._definitions())[name]
        path, cached_definition = DEFINITIONS.path_of(name), self._known.get(name)
        try:
            if cached_definition:
                # A definition has 200 KB; without its content, 2. Version 0: as the API server has
                # it in memory, from where it also serves objects by it; not read from etcd.
                now = await self._client.get(path, query=_IN_MEMORY, accept=METADATA)
                if cached_definition.identity == _identity(now):
                    return cached_definition
            whole = await self._client.get(path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return ServedDefinition(None, compare(definition, None))
        comparison = compare(definition, whole)
        both = (definition, whole) if comparison.differs else None
        self._known[name] = served = ServedDefinition(_identity(whole), comparison, both)
        return served


def _identity(definition: Json) -> tuple[str, int]:
    metadata = definition["metadata"]
    return metadata["uid"], metadata.get("generation") or 0


def reports(served: Mapping[str, ServedDefinition]) -> Mapping[str, str]:
    """Return what the definitions lack, by name; none that lacks nothing."""
    text_by_name = {
        name: f"the cluster has no definition {name}"
        if definition.identity is None
        else definition.comparison.report(name)
        for name, definition in served.items()
    }
    return {name: text for name, text in text_by_name.items() if text}


def differing(served: Mapping[str, ServedDefinition]) -> Mapping[str, tuple[Json, Json]]:
    """Return the own definition and that of the cluster, by name, where they differ."""
    return {name: definition.both for name, definition in served.items() if definition.both}


def newer_objects(
    definitions: Mapping[str, tuple[Json, Json]], objects: Mapping[str, bytes]
) -> Mapping[str, str]:
    """Return what objects have that their definition knows and this version does not, by place.

    definitions: the own one and that of the cluster, by name.
    objects: their texts, by resource and name: `placementpolicies/spot`.
    """
    parts_by_place = {
        place: newer_parts(*both, orjson.loads(text))
        for place, text in objects.items()
        if (both := definitions.get(f"{place.partition('/')[0]}.{names.GROUP}"))
    }
    return {
        place: first_few(parts, _MOST_NAMED) for place, parts in parts_by_place.items() if parts
    }


def older_than(newer: Mapping[str, str]) -> str:
    """Return that this command is older than these objects, which have such parts, by place."""
    shown = first_few([f"{place} has {parts}" for place, parts in newer.items()], _MOST_NAMED)
    return (
        f"this command (version {webhook.__version__}) is older than the cluster, so it does not "
        f"know what its policies do: {shown}"
    )
