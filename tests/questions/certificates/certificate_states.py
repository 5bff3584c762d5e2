"""Installations as a command sees them, in every state that certificates can be in."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from certs.authority import new_authority
from certs.issue import issue_server, service_names
from certs.kept import Authority, Serving
from webhook.controller.certificates.certificate_objects import Installation
from webhook.questions.certificates.report import CertificateState, ReadObject

INSTALLATION = Installation()
CONFIGURATION = "MutatingWebhookConfiguration fairlead"
ENTRIES = ("pods-0.fairlead.dev", "namespaces.fairlead.dev")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SIGNING = new_authority("fairlead", NOW - timedelta(days=10))
NEXT = new_authority("fairlead", NOW)
LEAF = issue_server(
    SIGNING,
    "fairlead-webhook",
    service_names(INSTALLATION.service, INSTALLATION.namespace),
    NOW - timedelta(days=3),
)
STEADY = Authority(SIGNING)
STAGED = replace(STEADY, staged=NEXT)
RETIRING = Authority(NEXT, retiring=(SIGNING.check(),))
HIDDEN = ReadObject(None, hidden=True)
ABSENT = ReadObject(None)


def secret(data: Mapping[str, bytes], annotations: Mapping[str, str] | None = None) -> ReadObject:
    """A Secret that may be read."""
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return ReadObject({"metadata": {"annotations": annotations or {}}, "data": encoded})


def serving(
    bundle: bytes = STEADY.bundle, annotations: Mapping[str, str] | None = None
) -> ReadObject:
    return secret(Serving(LEAF, bundle).data(), annotations)


def configuration(*bundles: bytes) -> ReadObject:
    service = {"namespace": INSTALLATION.namespace, "name": INSTALLATION.service}
    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "clientConfig": {"service": service, "caBundle": b64encode(bundle).decode()},
        }
        for name, bundle in zip(ENTRIES, bundles, strict=True)
    ]
    return ReadObject({"webhooks": entries})


def state(
    authority: Authority | ReadObject = STEADY,
    serving_secret: ReadObject | None = None,
    published: ReadObject | None = None,
) -> CertificateState:
    """In order, but for what is said."""
    kept = authority if isinstance(authority, ReadObject) else secret(authority.data())
    bundle = authority.bundle if isinstance(authority, Authority) else STEADY.bundle
    return CertificateState(
        INSTALLATION,
        kept,
        serving_secret or serving(bundle),
        {CONFIGURATION: published or configuration(bundle, bundle)},
    )
