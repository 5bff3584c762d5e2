"""Request a rotation, and wait for its end."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from certs.bundle import same
from certs.rotation import phase
from webhook import names
from webhook.errors import ClusterError, FairleadError, TimeOver
from webhook.questions.certificates.report import CertificateState, read_state
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime, timedelta

    from webhook.controller.certificates.certificate_objects import Installation
    from webhook.kube.client import Client

# Seconds between two reads.
LOOK_SECONDS: Final = 0.5
_PHASES: Final = {
    "staged": "staged: it is published in every caBundle",
    "published": "published: every API server gets the time to see it",
    "retiring": "retiring: the old one stays until every replica serves the new leaf",
}


class NotRotated(FairleadError):
    """The rotation was not done, or could not be requested; the text has the reason."""


async def ask(
    client: Client, installation: Installation, now: datetime, *, authority: bool
) -> CertificateState:
    """Set the annotation, and return the state before. Raises NotRotated, ClusterError."""
    name = installation.authority if authority else installation.serving
    before = await read_state(client, installation)
    try:
        kept = await _annotate(client, installation, name, to_second(now))
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise NotRotated(
                f"there is no Secret {name} in the namespace {installation.namespace}: is Fairlead"
                " installed there (-n), and does a controller run with --certificates? It makes"
                " the Secret within seconds"
            ) from None
        raise
    annotations = kept["metadata"].get("annotations") or {}
    if certificate := annotations.get(names.MADE_BY_CERT_MANAGER):
        await _annotate(client, installation, name, None)
        raise NotRotated(
            f"cert-manager keeps the Secret {name}, and Fairlead's controller does not "
            f"manage it: `cmctl -n {installation.namespace} renew {certificate}` renews it"
        )
    return before


async def _annotate(
    client: Client, installation: Installation, name: str, value: str | None
) -> dict[str, Any]:
    patch = {"metadata": {"annotations": {names.ROTATE: value}}}
    return await client.patch(installation.secret(name), patch, "merge")


async def progress(
    client: Client,
    installation: Installation,
    before: CertificateState,
    limit: timedelta,
    *,
    authority: bool,
) -> AsyncIterator[str]:
    """Yield a line for each step, until the rotation is done. Raises TimeOver, ClusterError."""
    last = ""
    try:
        async with asyncio.timeout(limit.total_seconds()):
            while True:
                now = await read_state(client, installation)
                if _done(before, now, authority=authority):
                    return
                doing = _doing(now, authority=authority)
                if doing != last:
                    last = doing
                    yield last
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise TimeOver(
            f"not done yet ({last}). Does a controller run with --certificates? Its log, and "
            "`fairlead webhook certs`, show what it waits for; the rotation continues"
        ) from None


def _done(before: CertificateState, now: CertificateState, *, authority: bool) -> bool:
    """Return whether the rotation is complete.

    If the authority may not be read, the leaf shows it: a new authority signs a new leaf.
    """
    old, new = before.kept_serving, now.kept_serving
    if new is None or any(now.asked) or (old and old.leaf.certificate == new.leaf.certificate):
        return False
    kept = now.kept_authority
    if not authority or now.authority.hidden:
        return all(same(bundle, new.bundle) for bundle in now.published.values())
    return (
        kept is not None
        and phase(kept) == "steady"
        and same(new.bundle, kept.bundle)
        and all(same(bundle, kept.bundle) for bundle in now.published.values())
    )


def _doing(now: CertificateState, *, authority: bool) -> str:
    if now.asked[0 if authority else 1]:
        return "waiting for the controller to take it up"
    if not authority:
        return "waiting for the caBundles"
    return _PHASES.get(phase(now.kept_authority), "waiting for the leaf and the caBundles")
