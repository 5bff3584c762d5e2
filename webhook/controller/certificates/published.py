"""The bundle as configurations of webhooks have it: read, and written as a server-side apply."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from webhook.controller.certificates.places import API_VERSION
from webhook.interception import leads_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.controller.certificates.places import Installation, Place


def bundles(
    configuration: Mapping[str, Any] | None, installation: Installation
) -> dict[str, bytes]:
    """The bundle of each webhook that calls the installation's Service, by the webhook's name.

    Empty where there is none, or none that can be read. Webhooks that call somebody else are left
    out: a url, or another Service.
    """
    return {
        str(entry["name"]): _decoded(entry["clientConfig"].get("caBundle"))
        for entry in (configuration or {}).get("webhooks") or ()
        if leads_to(entry, installation.namespace, installation.service)
    }


def application(
    place: Place, configuration: Mapping[str, Any], installation: Installation, bundle: bytes
) -> dict[str, Any]:
    """What to apply, so that each of those webhooks has this bundle, and nothing else is claimed.

    It holds for the version that was read: a configuration that has changed since, or is gone, is
    left as it is, and the API server answers 409.
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


def _decoded(text: str | None) -> bytes:
    try:
        return b64decode(text or "", validate=True)
    except binascii.Error:
        return b""
