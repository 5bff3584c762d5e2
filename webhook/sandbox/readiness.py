"""Tells when the parts of a control plane are ready."""

from __future__ import annotations

import http.client
import time
from typing import TYPE_CHECKING

from webhook.errors import SandboxError
from webhook.names import TAINT_NOT_READY

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.sandbox.api import Api


def wait_until(
    what: str,
    ready: Callable[[], bool],
    check: Callable[[], None],
    deadline: float,
    explain: Callable[[], str] = str,
) -> None:
    """Return once ready() holds, calling check() in between, which raises if there is no hope.

    Raises SandboxError, with what explain() says, when the monotonic clock passes the deadline.
    """
    while not ready():
        check()
        if time.monotonic() > deadline:
            raise SandboxError(
                f"the sandbox is not ready in time: waited for {what}\n{explain()}".rstrip()
            )
        time.sleep(0.03)


def etcd_ready(port: int) -> bool:
    """Whether etcd on 127.0.0.1:port serves reads and writes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def accounts_ready(api: Api, namespace: str) -> bool:
    """Whether pods can be created in the namespace: its default service account is there."""
    return api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default") is not None


def nodes_ready(api: Api, count: int) -> bool:
    """Whether that many nodes are Ready, and free of the taint that they are born with."""
    nodes = api.get("/api/v1/nodes")["items"] if count else []
    return sum(_ready(node) for node in nodes) >= count


def _ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    conditions = node["status"].get("conditions", [])
    taints = node["spec"].get("taints", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    ) and not any(taint["key"] == TAINT_NOT_READY for taint in taints)
