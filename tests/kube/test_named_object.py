"""One watched object by its name."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from webhook.kube.named_object import NamedObject
from webhook.kube.secrets import data_of, secrets
from webhook.kube.watches import Watches


def secret(version: int, data: dict[str, str] | None) -> dict[str, Any]:
    """A Secret as the API server tells of it."""
    metadata = {"name": "tls", "namespace": "ns", "resourceVersion": str(version)}
    return {"metadata": metadata, "data": data}


async def test_an_object_is_followed_by_its_name_alone(tmp_path: Path) -> None:
    """List and watch name it, as a role with resourceNames wants; its end is told as None."""
    told: list[dict[str, bytes] | None] = []
    go_on = asyncio.Event()

    async def answer(request: Request, to: Answer) -> None:
        assert request.query["fieldSelector"] == "metadata.name=tls"
        assert request.path == "/api/v1/namespaces/ns/secrets"
        if not request.is_watch:
            await to.json({"metadata": {"resourceVersion": "1"}, "items": []})
            return
        await to.begin()
        await to.event("ADDED", secret(2, {"a": base64.b64encode(b"one").decode()}))
        await go_on.wait()
        await to.event("DELETED", secret(3, {"a": base64.b64encode(b"one").decode()}))
        await asyncio.Event().wait()

    async with fake_api(answer) as api, client_of(api, tmp_path) as client:
        watches = Watches(client)
        named = NamedObject(watches, secrets("ns"), "tls", data_of)
        named.subscribe(told.append)
        assert named.value is None
        async with watches:
            await until(lambda: named.value == {"a": b"one"})
            go_on.set()
            await until(lambda: named.cache.synced and named.value is None)
    assert told == [{"a": b"one"}, None]
