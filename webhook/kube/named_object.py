"""One object, kept current by a watch that needs a permission for its name only."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

T = TypeVar("T")

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def secrets(namespace: str) -> str:
    """Return the path of a namespace's Secrets."""
    return f"/api/v1/namespaces/{namespace}/secrets"


def data_of(secret: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Return a Secret's decoded data; empty without a Secret.

    Invalid base64, which the API server rejects, is empty.
    """
    data = (secret or {}).get("data") or {}
    return {key: _decoded(value) for key, value in data.items()}


class NamedObject(Reflector[T]):
    """The object `name` of the collection at `path`, or its absence.

    `keep` converts it to the cached value. The object is listed and watched with
    `fieldSelector=metadata.name=<name>`, which a role with `resourceNames` permits (Kubernetes'
    documentation of RBAC, "Referring to resources").
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
        query = {"fieldSelector": f"metadata.name={name}"}
        super().__init__(client, path, Cache(keep, clock=clock), query=query, clock=clock)

    @property
    def value(self) -> T | None:
        """The cached value; None if the object does not exist or is not known yet."""
        return next(iter(self.cache.items().values()), None)

    def subscribe(self, listener: Callable[[T | None], None]) -> None:
        """Call `listener` with each new value; None: it was deleted."""
        self.cache.subscribe(lambda change: listener(change.after))


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value))
    except ValueError:
        return b""
