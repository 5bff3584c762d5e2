"""The policies and nodes of a cluster as texts for the playground."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook.cli.yaml_out import yaml_text
from webhook.errors import PassOver
from webhook.kube.policy_objects import read_objects
from webhook.ui.playground import MOST_BYTES, Texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.kube.client import Client

_PODS: Final = "# Put here what makes pods: a Run, a Job, a Pod or another workload.\n"


async def cluster_texts(client: Client) -> Texts:
    """Return what the user may read. Raises ClusterError if the cluster does not answer."""
    policies, nodes = [], []
    with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
        policies = [orjson.loads(text) for text in (await read_objects(client)).values()]
    with PassOver(HTTPStatus.FORBIDDEN):
        nodes = (await client.list("/api/v1/nodes", _node)).items
    return Texts(_text("policies", policies), _PODS, _text("nodes", nodes))


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    """Return what decides which pods a node admits."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    kept = {key: spec[key] for key in ("taints", "unschedulable") if spec.get(key)}
    allocatable = (raw.get("status") or {}).get("allocatable")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        **({"spec": kept} if kept else {}),
        **({"status": {"allocatable": allocatable}} if allocatable else {}),
    }


def _text(what: str, documents: Iterable[dict[str, Any]]) -> str:
    text = "---\n".join(map(yaml_text, documents))
    if len(text) > MOST_BYTES // 3:
        return f"# The cluster has more {what} than fit here: give some with --{what} FILE.\n"
    return text
