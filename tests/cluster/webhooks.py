"""Webhooks that run beside a control plane as long as a test needs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.spaces import Running
from webhook import names, validating
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook, start_webhook, stop_webhook

_VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@contextmanager
def serving(plane: ControlPlane, folder: Path | None, **how: Any) -> Iterator[Running]:
    """A webhook over the folder's policies, or the cluster's, registered meanwhile."""
    webhook = start_webhook(plane, folder, **how)
    try:
        yield Running(webhook, folder or Path())
    finally:
        stop_webhook(plane, webhook)


@contextmanager
def serving_objects(plane: ControlPlane, *options: str) -> Iterator[Running]:
    """A webhook over the cluster's policies, of which there are none before and afterwards."""
    erase(plane)
    try:
        with serving(plane, None, options=options) as running:
            yield running
    finally:
        erase(plane)


def erase(plane: ControlPlane) -> None:
    """Delete all exceptions, then all policies, then all classes."""
    for resource in (names.PLACEMENT_EXCEPTIONS, names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES):
        path = f"/apis/{names.API_VERSION}/{resource}"
        for each in plane.api.get(path)["items"]:
            status, answer = plane.api.call("DELETE", f"{path}/{each['metadata']['name']}")
            assert status == 200, answer


@contextmanager
def told_of_workloads(
    plane: ControlPlane, webhook: Webhook, only_namespaces: tuple[str, ...] = ()
) -> Iterator[str]:
    """The API server tells the webhook of workloads meanwhile; the path of what says so."""
    entries = validating.webhooks(
        url=webhook.url.removesuffix("/mutate"),
        ca_bundle=webhook.authority.read_bytes(),
        only_namespaces=only_namespaces,
        policies=False,
    )
    # As shipped it has two seconds, which a busy machine may need for something else.
    patient = [{**each, "timeoutSeconds": 30} for each in entries]
    name = f"{webhook.name}-workloads"
    plane.api.create(_VALIDATING, {"metadata": {"name": name}, "webhooks": patient})
    try:
        yield f"{_VALIDATING}/{name}"
    finally:
        plane.api.call("DELETE", f"{_VALIDATING}/{name}")
