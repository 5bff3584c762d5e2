"""The webhook configurations of a webhook that runs beside the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook import names, validating
from webhook.interception import DEFAULT_SOURCES, webhooks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def mutating_webhook_configuration(
    url: str,
    ca_bundle: bytes,
    *,
    sources: Collection[str] = DEFAULT_SOURCES,
    failure_policy: str = "Fail",
    only_namespaces: Sequence[str] = (),
    name: str = names.WEBHOOK_CONFIGURATION,
) -> dict[str, Any]:
    """The configuration that has pods reviewed at `url`, which `ca_bundle` (PEM) vouches for.

    Of `sources` and `only_namespaces` see `webhook.interception.webhooks`.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": webhooks(
            sources,
            url=url,
            ca_bundle=ca_bundle,
            failure_policy=failure_policy,
            only_namespaces=only_namespaces,
        ),
    }


def validating_webhook_configuration(
    url: str,
    ca_bundle: bytes,
    *,
    only_namespaces: Sequence[str] = (),
    name: str = names.WEBHOOK_CONFIGURATION,
) -> dict[str, Any]:
    """The configuration by which writes of policies are judged and workloads commented on.

    `url` is the server's, without a path; `ca_bundle` (PEM) vouches for it.
    """
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": validating.webhooks(
            url=url, ca_bundle=ca_bundle, only_namespaces=only_namespaces
        ),
    }
