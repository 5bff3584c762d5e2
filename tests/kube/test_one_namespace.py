"""A namespace that somebody named is read, or said not to be there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.wording import Wording, mentions
from webhook.errors import ClusterError
from webhook.kube.one_namespace import read_namespace

RESEARCH = {"metadata": {"name": "research"}}


def read(name: str, folder: Path) -> dict[str, Any]:
    """Of a cluster that has one namespace, and one that may not be read."""

    async def handle(request: Request, answer: Answer) -> None:
        if request.path == "/api/v1/namespaces/research":
            await answer.json(RESEARCH)
        elif request.path == "/api/v1/namespaces/secret":
            await answer.status(403, "Forbidden", "no")
        else:
            await answer.status(404, "NotFound", request.path)

    async def run() -> dict[str, Any]:
        async with fake_api(handle) as api, client_of(api, folder) as client:
            return await read_namespace(client, name)

    return asyncio.run(run())


def test_one_that_is_there_is_read(tmp_path: Path) -> None:
    """As it is."""
    assert read("research", tmp_path) == RESEARCH


def test_one_that_is_not_there_is_named_with_what_lists_them(
    tmp_path: Path, wording: Wording
) -> None:
    """It is a slip of the pen; the path of a request says little to whoever made it."""
    with pytest.raises(ClusterError) as caught:
        read("nope", tmp_path)
    mentions(str(caught.value), "no namespace nope", "kubectl get namespaces")
    wording(str(caught.value))
    with pytest.raises(ClusterError, match="403"):
        read("secret", tmp_path)
