"""Carries out one step of a rotation: one write, that holds for what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from certs.bundle import same
from certs.rotation import KeepAuthority, KeepServing, Publish
from webhook import names
from webhook.controller.certificates import secrets
from webhook.controller.certificates.published import application, bundles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.controller.certificates.observe import ObservedCertificates
    from webhook.controller.certificates.places import Installation
    from webhook.kube.client import PatchType

_APPLY: Final = {"fieldManager": names.CERTIFICATES_MANAGER, "force": "true"}


class Writes(Protocol):
    """What is needed of webhook.kube.writer.Writer, or of a Client."""

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create `body` in a collection."""

    async def replace(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace an object."""

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any],
        patch_type: PatchType,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Patch an object."""


async def carry_out(
    step: KeepAuthority | KeepServing | Publish,
    seen: ObservedCertificates,
    installation: Installation,
    writes: Writes,
) -> None:
    """Write what `step` says, over what was seen.

    Raises ClusterError; 409 says that somebody has been quicker, and nothing was done. Of several
    configurations those that need it are written one after the other, each being a write that
    stands alone: where the bundle has come already, it is right.
    """
    match step:
        case KeepAuthority(authority):
            before = seen.observed.authority
            # A rotation that was under way already is not the one that was asked for.
            answered = authority.staged is not None and (
                before is None or before.staged != authority.staged
            )
            data, kind = authority.data(), secrets.OPAQUE
            await _keep(
                installation.authority, kind, seen.authority, data, answered, installation, writes
            )
        case KeepServing(serving):
            old = seen.observed.serving
            answered = old is None or old.leaf != serving.leaf
            data, kind = serving.data(), secrets.TLS
            await _keep(
                installation.serving, kind, seen.serving, data, answered, installation, writes
            )
        case Publish(bundle):
            for place, configuration in seen.configurations:
                held = bundles(configuration, installation).values()
                if not all(same(each, bundle) for each in held):
                    body = application(place, configuration, installation, bundle)
                    await writes.patch(place.path, body, "apply", query=_APPLY)


async def _keep(
    name: str,
    kind: str,
    secret: Mapping[str, Any] | None,
    data: Mapping[str, bytes],
    answered: bool,
    installation: Installation,
    writes: Writes,
) -> None:
    if secret is None:
        await writes.create(installation.secrets, secrets.new(name, kind, data))
    else:
        body = secrets.replaced(secret, data, answered=answered)
        await writes.replace(installation.secret(name), body)
