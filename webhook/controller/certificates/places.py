"""Which objects hold an installation's certificates, and in which ones its bundle is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook import names
from webhook.kube import named

API_VERSION: Final = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Place:
    """One configuration of webhooks, in whose entries for our Service the bundle is ours."""

    kind: str
    resource: str
    name: str

    @property
    def collection(self) -> str:
        """The path of all configurations of this kind."""
        return f"/apis/{API_VERSION}/{self.resource}"

    @property
    def path(self) -> str:
        """The path of this one."""
        return f"{self.collection}/{self.name}"


def mutating(name: str) -> Place:
    """The MutatingWebhookConfiguration of this name."""
    return Place("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", name)


def validating(name: str) -> Place:
    """The ValidatingWebhookConfiguration of this name."""
    return Place("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", name)


def both(name: str) -> tuple[Place, ...]:
    """The configurations of this name, of either kind: an installation's are called the same."""
    return (mutating(name), validating(name))


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of one installation, by name.

    port: the name of the Service's port that is served by TLS.
    places: where the API server reads whom to trust; each need not be there.
    """

    namespace: str = names.NAMESPACE
    service: str = names.WEBHOOK
    authority: str = names.AUTHORITY_SECRET
    serving: str = names.SERVING_SECRET
    places: tuple[Place, ...] = both(names.WEBHOOK_CONFIGURATION)
    port: str = "https"

    @property
    def server_name(self) -> str:
        """The one name that the API server checks (client-go's webhook resolver)."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def secrets(self) -> str:
        """The path of the namespace's Secrets."""
        return named.secrets(self.namespace)

    def secret(self, name: str) -> str:
        """The path of one of them."""
        return f"{self.secrets}/{name}"
