"""Our entries in the webhook configuration: their caBundles and their selectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.interception import leads_to, read_ca_bundles
from webhook.placement.label_values import selects

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Service:
    """The Service by which the API server calls the webhook."""

    namespace: str
    name: str

    @property
    def host(self) -> str:
        """The server name that the API server verifies (client-go's webhook resolver)."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Published:
    """A published CA bundle: `where` is for messages, `bundle` is PEM, possibly empty."""

    where: str
    bundle: bytes


def published(configuration: Mapping[str, Any], service: Service) -> tuple[Published, ...]:
    """Return the bundle of each entry for the Service in a MutatingWebhookConfiguration.

    Equal bundles are returned once, under the first entry's name.
    """
    published_by_bundle: dict[bytes, Published] = {}
    for name, bundle in read_ca_bundles(configuration, service.namespace, service.name).items():
        published_by_bundle.setdefault(bundle, Published(f"caBundle of webhook {name}", bundle))
    return tuple(published_by_bundle.values())


@dataclass(frozen=True, slots=True)
class SentPods:
    """The webhook entries for our Service that have rules.

    Conditions in CEL are not evaluated: such an entry counts as matching.
    """

    entries: tuple[Mapping[str, Any], ...]

    def selects(self, pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        """Return True if the API server sends a pod with these labels, in such a namespace."""
        return any(
            selects(entry, "namespaceSelector", namespace) and selects(entry, "objectSelector", pod)
            for entry in self.entries
        )


def reach(configuration: Mapping[str, Any], service: Service) -> SentPods | None:
    """Return the entries of a MutatingWebhookConfiguration; None without an entry for the Service.

    An entry without rules matches nothing: `fairlead webhook disable` removes the rules for a time.
    """
    ours = [
        entry
        for entry in configuration.get("webhooks") or ()
        if leads_to(entry, service.namespace, service.name)
    ]
    return SentPods(tuple(entry for entry in ours if entry.get("rules"))) if ours else None
