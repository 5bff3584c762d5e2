"""The objects that store and publish an installation's certificates: paths, content, changes.

Secrets store them. Webhook configurations publish the bundle, which server-side apply writes.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from certs import kept
from webhook import names
from webhook.api_paths import CollectionPath
from webhook.interception import read_ca_bundles
from webhook.kube.secrets import secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api_paths import ObjectPath
API_VERSION: Final = "admissionregistration.k8s.io/v1"
OPAQUE: Final = "Opaque"
TLS: Final = "kubernetes.io/tls"

_OURS: Final = frozenset(
    {
        kept.CERTIFICATE,
        kept.PRIVATE_KEY,
        kept.BUNDLE,
        kept.STAGED_CERTIFICATE,
        kept.STAGED_KEY,
        kept.RETIRING,
        kept.PUBLISHED_SINCE,
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """A webhook configuration; Fairlead manages the caBundle of its entries for our Service."""

    kind: str
    resource: str
    name: str

    @property
    def collection(self) -> CollectionPath:
        """The path of the collection of this kind."""
        return CollectionPath(API_VERSION, self.resource)

    @property
    def path(self) -> ObjectPath:
        """The path of this configuration."""
        return self.collection.path_of(self.name)


def mutating(name: str) -> Place:
    """Return the MutatingWebhookConfiguration of this name."""
    return Place("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", name)


def validating(name: str) -> Place:
    """Return the ValidatingWebhookConfiguration of this name."""
    return Place("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", name)


def both(name: str) -> tuple[Place, ...]:
    """Return both configurations of this name; an installation uses one name for both."""
    return (mutating(name), validating(name))


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of one installation, by name.

    port: the name of the Service's TLS port.
    places: the webhook configurations that hold the CA bundle; any may be absent.
    """

    namespace: str = names.NAMESPACE
    service: str = names.WEBHOOK
    authority: str = names.AUTHORITY_SECRET
    serving: str = names.SERVING_SECRET
    places: tuple[Place, ...] = both(names.WEBHOOK_CONFIGURATION)
    port: str = "https"

    @property
    def server_name(self) -> str:
        """The server name that the API server verifies (client-go's webhook resolver)."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def secrets(self) -> CollectionPath:
        """The path of the namespace's Secrets."""
        return secrets(self.namespace)

    def secret(self, name: str) -> ObjectPath:
        """Return the path of one Secret."""
        return self.secrets.path_of(name)


def bundles(
    configuration: Mapping[str, Any] | None, installation: Installation
) -> dict[str, bytes]:
    """Return the bundle of each webhook that calls the installation's Service, by webhook name."""
    return read_ca_bundles(configuration or {}, installation.namespace, installation.service)


def application(
    place: Place, configuration: Mapping[str, Any], installation: Installation, bundle: bytes
) -> dict[str, Any]:
    """Return the apply patch that sets this bundle in each of those webhooks and nothing else.

    The patch requires the version that was read. If the configuration was changed or deleted
    since, the API server answers 409.
    """
    text = b64encode(bundle).decode()
    return {
        "apiVersion": API_VERSION,
        "kind": place.kind,
        "metadata": {
            "name": place.name,
            "uid": configuration["metadata"]["uid"],
            "resourceVersion": configuration["metadata"]["resourceVersion"],
        },
        "webhooks": [
            {"name": name, "clientConfig": {"caBundle": text}}
            for name in bundles(configuration, installation)
        ],
    }


def is_renewal_requested(secret: Mapping[str, Any] | None) -> bool:
    """Return True if the annotation requests a renewal."""
    return names.ROTATE in (((secret or {}).get("metadata") or {}).get("annotations") or {})


def new_secret(name: str, kind: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a new Secret; `kind` is its type."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "fairlead"}},
        "type": kind,
        "data": _encoded(_complete(kind, data)),
    }


def replaced_secret(
    secret: Mapping[str, Any], data: Mapping[str, bytes], *, answered: bool
) -> dict[str, Any]:
    """Return the Secret with new `data` for Fairlead's keys, at the version that was read.

    `answered`: remove the annotation that requests a renewal. The type stays, whatever it is: it
    is immutable, and deleting a Secret would need an additional right. Keys of others stay too,
    because the type may require them, and readers of Fairlead's keys ignore the type.
    """
    metadata = dict(secret["metadata"])
    if answered:
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(names.ROTATE, None)
        metadata["annotations"] = annotations
    held = secret.get("data") or {}
    others = {key: text for key, text in held.items() if key not in _OURS}
    whole = _complete(str(secret.get("type")), data)
    return {**secret, "metadata": metadata, "data": {**others, **_encoded(whole)}}


def _complete(kind: str, data: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Add empty keys that type TLS requires and a new authority does not have yet."""
    return {kept.CERTIFICATE: b"", kept.PRIVATE_KEY: b"", **data} if kind == TLS else data


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: b64encode(value).decode() for key, value in data.items()}
