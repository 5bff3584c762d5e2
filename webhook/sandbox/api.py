"""The sandbox's API server: calls, waiting until it is ready, and definitions."""

from __future__ import annotations

import http.client
import json
import select
import ssl
import threading
import time
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import SandboxError
from webhook.kube.throttling import pause_before_retry, retry_after_seconds
from webhook.names import TAINT_NOT_READY
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.credentials import ADMIN_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


_JSON: Final = "application/json"
_SERVED_TIMEOUT_SECONDS: Final = 30  # seconds until a new definition is served
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# The discovery that kubectl reads (KEP-3352, aggregated discovery).
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class NoAnswer(SandboxError):
    """The API server of the sandbox did not answer a request."""


class Api:
    """The API server on 127.0.0.1:port, as the administrator, with one connection per thread.

    The controller manager and the scheduler report their health in the same way, so `ready` works
    for them too.
    """

    def __init__(self, port: int, credentials: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
        self._authorization = f"Bearer {(credentials / ADMIN_TOKEN).read_text()}"
        # By thread. A connection is removed while in use, and added again after a complete answer.
        self._kept: dict[int, http.client.HTTPSConnection] = {}

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> tuple[int, Any]:
        """Return the status and the decoded body of one request. Raises NoAnswer.

        A body that is not JSON (readyz answers "ok") comes back as text. A request that the server
        was too busy to take is sent again: the storage of a kind whose definition has just changed
        is not there for a moment.
        """
        sent = None if body is None else json.dumps(body)
        headers = {
            "Content-Type": content_type,
            "Accept": accept,
            "Authorization": self._authorization,
        }
        for tries in count(1):
            try:
                status, retry_after, text = self._exchange(method, path, sent, headers)
            except (http.client.HTTPException, OSError) as error:
                raise NoAnswer(
                    f"the sandbox's API server does not answer ({type(error).__name__}: {error});"
                    " if the machine is busy, end other work, and run it again"
                ) from error
            seconds = pause_before_retry(status, retry_after_seconds(retry_after), tries)
            if seconds is None:
                break
            time.sleep(seconds)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def get(self, path: str) -> Any:
        """Return the decoded object, or None if there is none. Raises SandboxError on any other
        status.
        """
        return self._found("GET", path)

    def create(self, path: str, body: object) -> Any:
        """Return the object as created. Raises SandboxError with the server's message if it
        refuses.
        """
        return _accepted("POST", path, *self.call("POST", path, body))

    def patch(self, path: str, body: object) -> Any:
        """Return the object with `body` merged into it. Raises SandboxError if the server
        refuses."""
        answer = self.call("PATCH", path, body, content_type="application/merge-patch+json")
        return _accepted("PATCH", path, *answer)

    def delete(self, path: str) -> Any:
        """Return what the server answers; None if there is nothing. Raises SandboxError if it
        refuses.
        """
        return self._found("DELETE", path)

    def _found(self, method: str, path: str) -> Any:
        status, body = self.call(method, path)
        if status == http.HTTPStatus.NOT_FOUND:
            return None
        return _accepted(method, path, status, body)

    def ready(self) -> bool:
        """Return whether it reports that it is ready; False while it does not answer."""
        try:
            return self.call("GET", "/readyz")[0] == http.HTTPStatus.OK
        except NoAnswer:
            return False

    def close(self) -> None:
        """Close all connections. A later call opens another."""
        while self._kept:
            self._kept.popitem()[1].close()

    def _exchange(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        """Return the status, Retry-After and the body of one answer."""
        kept = self._take()
        connection = kept or http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=30, context=self._context
        )
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            text = response.read()
        except (ConnectionError, ssl.SSLError):
            connection.close()
            # The server may have closed an idle connection. Only GET requests are repeated.
            if kept and method == "GET":
                return self._exchange(method, path, body, headers)
            raise
        except BaseException:
            connection.close()
            raise
        self._kept[threading.get_ident()] = connection
        return response.status, response.getheader("Retry-After"), text

    def _take(self) -> http.client.HTTPSConnection | None:
        """Take this thread's connection if the server still holds it open."""
        kept = self._kept.pop(threading.get_ident(), None)
        if kept is None or kept.sock is None:
            return None
        poll = select.poll()
        poll.register(kept.sock, select.POLLIN)
        # No answer is due, so readable data means the end of the connection.
        if not poll.poll(0):
            return kept
        kept.close()
        return None


def _accepted(method: str, path: str, status: int, body: Any) -> Any:
    if status >= http.HTTPStatus.BAD_REQUEST:
        message = body.get("message", body) if isinstance(body, dict) else body
        raise SandboxError(f"the sandbox's API server refused {method} {path}: {message}")
    return body


def wait_until(
    what: str,
    ready: Callable[[], bool],
    check: Callable[[], None],
    deadline: float,
    explain: Callable[[], str] = str,
) -> None:
    """Wait until ready() is true; check() is called in between, and raises to give up.

    Raises SandboxError, with the text of explain(), when the monotonic clock passes the deadline.
    """
    while not ready():
        check()
        if time.monotonic() > deadline:
            raise SandboxError(
                f"the sandbox is not ready in time: waited for {what}\n{explain()}".rstrip()
            )
        time.sleep(0.1)


def is_ready(port: int, path: str = "/readyz") -> bool:
    """Return whether the process on 127.0.0.1:port answers the path, without TLS, with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def accounts_ready(api: Api, namespace: str) -> bool:
    """Return whether pods can be created in the namespace: its default service account exists."""
    return api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default") is not None


def nodes_ready(api: Api, count: int) -> bool:
    """Return whether that many nodes are Ready, without the taint of new nodes."""
    nodes = api.get("/api/v1/nodes")["items"] if count else []
    old = [
        node
        for node in nodes
        if TAINT_NOT_READY not in [taint["key"] for taint in node["spec"].get("taints", ())]
    ]
    return sum(map(has_condition, old)) >= count


def has_condition(live_object: Mapping[str, Any], kind: str = "Ready") -> bool:
    """Return whether the object's status has the condition."""
    conditions = live_object.get("status", {}).get("conditions") or ()
    return any(
        condition["type"] == kind and condition["status"] == "True" for condition in conditions
    )


def install_definitions(api: Api, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Create all the CustomResourceDefinitions, and return once kubectl can create their objects.

    Raises SandboxError if one is refused, or there already, or not established in time.
    """
    for definition in wanted:
        api.create(_DEFINITIONS, definition)
    for definition in wanted:
        _wait_until_served(api, definition)


def missing_definitions(api: Api, wanted: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of the CustomResourceDefinitions that the API server does not have."""
    return [
        definition
        for definition in wanted
        if not api.get(f"{_DEFINITIONS}/{definition['metadata']['name']}")
    ]


def _wait_until_served(api: Api, definition: Mapping[str, Any]) -> None:
    name, spec = definition["metadata"]["name"], definition["spec"]
    version = next(entry["name"] for entry in spec["versions"] if entry["served"])
    objects = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"

    def served() -> bool:
        # At first the storage is initializing, and then discovery lacks the kind for a moment.
        return (
            has_condition(api.get(f"{_DEFINITIONS}/{name}"), "Established")
            and api.call("GET", objects)[0] == HTTPStatus.OK
            and spec["names"]["plural"] in _discovered(api, spec["group"], version)
        )

    wait_until(name, served, lambda: None, time.monotonic() + _SERVED_TIMEOUT_SECONDS)


def _discovered(api: Api, group: str, version: str) -> set[str]:
    """Return the plurals of the kinds of this group and version in aggregated discovery."""
    status, answer = api.call("GET", "/apis", accept=_DISCOVERY)
    if status != HTTPStatus.OK:
        return set()
    return {
        resource["resource"]
        for item in answer["items"]
        if item["metadata"]["name"] == group
        for served in item["versions"]
        if served["version"] == version
        for resource in served["resources"]
    }


def definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of Runs and of every kind that policies have."""
    return [custom_resource_definition(), *custom_resource_definitions().values()]
