"""Secrets as the API server has them, from and to what certs keeps."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from certs import kept
from webhook import names
from webhook.kube import named

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def data_of(secret: Mapping[str, Any] | None) -> dict[str, bytes]:
    """What a Secret holds; nothing if it is absent."""
    return named.data_of(secret or {})


def asks(secret: Mapping[str, Any] | None) -> bool:
    """Whether somebody asked for what it holds to be renewed."""
    return names.ROTATE in (((secret or {}).get("metadata") or {}).get("annotations") or {})


def new(name: str, kind: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    """A Secret that is not there yet; `kind` is its type."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "fairlead"}},
        "type": kind,
        "data": _encoded(_complete(kind, data)),
    }


def replaced(
    secret: Mapping[str, Any], data: Mapping[str, bytes], *, answered: bool
) -> dict[str, Any]:
    """The Secret with `data` in place of what certs kept in it, at the version that was read.

    `answered`: it no longer asks for a renewal. A type cannot be changed, and to delete a Secret
    takes a right that is needed for nothing else. So whatever type somebody has made it of stays:
    the keys that are not ours stay too, for the type may demand them, and who reads ours does not
    ask for the type.
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
    """An authority that does not sign yet has no such keys, but this type demands them."""
    return {kept.CERTIFICATE: b"", kept.PRIVATE_KEY: b"", **data} if kind == TLS else data


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: b64encode(value).decode() for key, value in data.items()}
