"""What the API server is told to trust of this webhook: read from its configuration."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.interception import leads_to

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Service:
    """The Service by which the API server reaches the webhook."""

    namespace: str
    name: str

    @property
    def host(self) -> str:
        """The one name that the API server checks (client-go's webhook resolver)."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Published:
    """One place that says whom to trust: `where` is for people, `bundle` is PEM, maybe empty."""

    where: str
    bundle: bytes


def published(configuration: Mapping[str, Any], service: Service) -> tuple[Published, ...]:
    """The bundle of each entry of a MutatingWebhookConfiguration that goes to the Service.

    Equal bundles are told once, under the first entry's name.
    """
    found: dict[bytes, Published] = {}
    for entry in configuration.get("webhooks") or ():
        if leads_to(entry, service.namespace, service.name):
            where = f"caBundle of webhook {entry.get('name')}"
            bundle = _decoded(entry["clientConfig"].get("caBundle"))
            found.setdefault(bundle, Published(where, bundle))
    return tuple(found.values())


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(str(text or ""))
    except ValueError:
        return b""
