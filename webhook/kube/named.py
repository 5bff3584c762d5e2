"""One object by its name, kept current by a watch that needs a right to that name alone."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

T = TypeVar("T")

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def secrets(namespace: str) -> str:
    """The path of a namespace's Secrets."""
    return f"/api/v1/namespaces/{namespace}/secrets"


def data_of(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """A Secret's data; what is no base64, which the API server never sends, is empty."""
    return {key: _decoded(value) for key, value in (secret.get("data") or {}).items()}


class Named(Generic[T]):
    """The object `name` of the collection at `path`, or that there is none.

    `keep` makes of it what is remembered. `run()` keeps it current, and must go on all the time.
    It is listed and watched by `fieldSelector=metadata.name=<name>`, which a role with
    `resourceNames` allows (Kubernetes' documentation of RBAC, "Referring to resources").
    """

    def __init__(
        self,
        client: Client,
        path: str,
        name: str,
        keep: Callable[[dict[str, Any]], T],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cache: Cache[T] = Cache(keep, clock=clock)
        query = {"fieldSelector": f"metadata.name={name}"}
        self.reflector = Reflector(client, path, self.cache, query=query, clock=clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self.reflector.run()

    @property
    def value(self) -> T | None:
        """What is remembered of it; None if there is none, or none is known yet."""
        return next(iter(self.cache.items().values()), None)

    def subscribe(self, listener: Callable[[T | None], None]) -> None:
        """Call `listener` with each new value; None: it was deleted."""
        self.cache.subscribe(lambda change: listener(change.after))


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value))
    except ValueError:
        return b""
