"""Policies as objects of the cluster: from files, as an installation writes and reads them."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import get_object
from webhook.installation.manifests import CONFIG_MAP, WEBHOOK
from webhook.installation.object_kinds import KINDS, POLICIES, Key, in_order, key, key_of
from webhook.installation.policy_files import (
    digest,
    mounted_config_map,
    note_of,
    noted,
    takes_files,
)
from webhook.judgement import set_judgement
from webhook.policy import policy_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.policy.policy_documents import Document, PolicyDocument

    Json = dict[str, Any]

# Where an object comes from: it ships with Fairlead, or the user who installs gave it.
Origin = Literal["shipped", "given"]
SHIPPED: Final = "shipped"
GIVEN: Final = "given"
_OF_FORM: Final = ("apiVersion", "kind", "spec")


def of_files(files: Mapping[str, bytes]) -> list[Json]:
    """Return the documents of policy files as objects. Raises InvalidDocuments with every error.

    An object has the fields that are written, without default values.
    """
    return [_object(document.model) for document in policy_documents.parse(files).sound()]


def of_key(key: Key) -> bool:
    """Return whether this is a policy, a class or an exception."""
    return key.kind.name in POLICIES


def marked(wanted: Mapping[str, Any], origin: Origin) -> Json:
    """Return the object with an annotation that shows later whether another client has changed
    it."""
    return noted(wanted, digest([origin, normalized(wanted)]))


def is_still(live: Mapping[str, Any], *origins: Origin) -> bool:
    """Return whether it is as an installation wrote it, with one of these origins."""
    spec = normalized(live)
    return note_of(live) in [digest([origin, spec]) for origin in origins]


def normalized(found: Mapping[str, Any]) -> object:
    """Return the spec of an object with all default values.

    The API server fills in some of them when it stores an object. A spec that is not valid is
    returned as it is.
    """
    text = orjson.dumps({"metadata": {"name": "any"}, **{k: found.get(k) for k in _OF_FORM}})
    documents = set_judgement.read_object(str(found.get("kind")), text).documents
    if not documents:
        return found.get("spec")
    return documents[0].model.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def ordered(policies: Iterable[Mapping[str, Any]]) -> dict[Key, Json]:
    """Policies in an order for one-by-one writes: classes before their complements.

    Circular classes never compile; they are ordered by name.
    """
    found = {key(each): dict(each) for each in policies}
    names_of = {at.name: at for at in found if at.kind.name == names.CLASS_KIND}

    def depth(at: Key) -> int:
        visited: list[Key] = []
        step: Key | None = at
        while step is not None and step not in visited:
            visited.append(step)
            other = (found[step].get("spec") or {}).get("complementOf")
            step = names_of.get(str(other)) if step.kind.name == names.CLASS_KIND else None
        return len(visited)

    return {at: found[at] for at in sorted(found, key=lambda at: (at.rank, depth(at), at.name))}


async def read_policies(client: Client) -> dict[Key, Json]:
    """Return every policy, class and exception of the cluster. Kinds without a definition have
    none."""
    found: list[Json] = []
    for kind in KINDS:
        if kind.name not in POLICIES:
            continue
        try:
            listing = await client.list(key_of(kind.name, "any").collection, lambda each: each)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            continue
        # Items of a list have no apiVersion and kind.
        own = {"apiVersion": kind.api_version, "kind": kind.name}
        found += [{**each, **own} for each in listing.items]
    return in_order(found)


async def read_sources(client: Client) -> Sequence[Document]:
    """Return the documents RunSource that the webhook reads: objects, or files of its ConfigMap.

    Documents with errors are left out. Raises ClusterError.
    """
    before = await get_object(client, WEBHOOK.path)
    if before and takes_files(before):
        name = mounted_config_map(before)
        config_map = await get_object(client, CONFIG_MAP._replace(name=name).path) if name else None
        files = ((config_map or {}).get("data") or {}).items()
        read = policy_documents.parse({at: text.encode() for at, text in files if is_read(at)})
    else:
        texts = texts_of(await read_policies(client))
        own = {at: text for at, text in texts.items() if at.startswith(f"{names.RUN_SOURCES}/")}
        read = set_judgement.Objects().documents(own)
    return [each for each in read.documents if each.model.kind == names.SOURCE_KIND]


def texts_of(objects: Mapping[Key, Json]) -> dict[str, bytes]:
    """Return the objects as a policy set reads them, by resource and name."""
    return {
        f"{at.kind.resource}/{at.name}": orjson.dumps(
            {
                "apiVersion": at.kind.api_version,
                "kind": at.kind.name,
                "metadata": {"name": at.name},
                "spec": each.get("spec"),
            }
        )
        for at, each in objects.items()
    }


def is_read(name: str) -> bool:
    """Return whether the webhook reads a file of this name in a ConfigMap
    (webhook.server.folder)."""
    ending = name.endswith((".yaml", ".yml", ".json"))
    return ending and not name.endswith((".test.yaml", ".test.yml")) and not name.startswith(".")


def _object(model: PolicyDocument) -> Json:
    metadata = {
        field: value
        for field in ("labels", "annotations")
        if (value := getattr(model.metadata, field))
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": model.kind,
        "metadata": {"name": model.name, **metadata},
        "spec": model.spec.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude_none=True
        ),
    }
