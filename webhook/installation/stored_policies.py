"""Read the policies and sources that an installed webhook reads."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import get_object
from webhook.installation.manifests import CONFIG_MAP, WEBHOOK
from webhook.installation.object_kinds import KINDS, POLICIES, Key, in_order, key_of
from webhook.installation.policy_files import mounted_config_map, takes_files
from webhook.policy import policy_documents
from webhook.policy.cluster_objects import Objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.policy.policy_documents import Document

    Json = dict[str, Any]


async def read_policies(client: Client) -> dict[Key, Json]:
    """Every policy, class and exception of the cluster. Kinds without a definition have none."""
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
    """The documents RunSource that the webhook reads: objects, or files of its ConfigMap.

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
        read = Objects().documents(own)
    return [each for each in read.documents if each.model.kind == names.SOURCE_KIND]


def texts_of(objects: Mapping[Key, Json]) -> dict[str, bytes]:
    """The objects as a policy set reads them, by resource and name."""
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
    """Whether the webhook reads a file of this name in a ConfigMap (webhook.server.folder)."""
    ending = name.endswith((".yaml", ".yml", ".json"))
    return ending and not name.endswith((".test.yaml", ".test.yml")) and not name.startswith(".")
