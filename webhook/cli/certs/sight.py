"""What of an installation's certificates may be seen, by whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from certs.kept import Authority, Serving
from webhook.controller.certificates.published import bundles
from webhook.controller.certificates.secrets import asks, data_of
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.controller.certificates.places import Installation
    from webhook.kube.client import Client


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as it was read: None if it is absent, or if it may not be seen."""

    raw: Mapping[str, Any] | None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """All of it. The keys that Secrets hold are read with them, and go no further."""

    installation: Installation
    authority: Seen
    serving: Seen
    configurations: Mapping[str, Seen]

    @property
    def kept_authority(self) -> Authority | None:
        """None if it is absent, garbled, or may not be seen."""
        return Authority.read(data_of(self.authority.raw))

    @property
    def kept_serving(self) -> Serving | None:
        """None if it is absent, garbled, or may not be seen."""
        return Serving.read(data_of(self.serving.raw))

    @property
    def asked(self) -> tuple[bool, bool]:
        """Whether somebody asked for a new authority, and for a new leaf."""
        return asks(self.authority.raw), asks(self.serving.raw)

    @property
    def published(self) -> Mapping[str, bytes]:
        """The bundle of each webhook that calls the installation's Service, by its name."""
        return {
            name: bundle
            for seen in self.configurations.values()
            for name, bundle in bundles(seen.raw, self.installation).items()
        }


async def look(client: Client, installation: Installation) -> Sight:
    """Read it. Raises ClusterError for anything but an object that is absent or forbidden."""
    configurations = {
        f"{place.kind} {place.name}": await _read(client, place.path)
        for place in installation.places
    }
    serving = await _read(client, installation.secret(installation.serving))
    authority = await _read(client, installation.secret(installation.authority))
    return Sight(installation, authority, serving, configurations)


async def _read(client: Client, path: str) -> Seen:
    try:
        return Seen(await client.get(path))
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return Seen(None)
        if error.status == HTTPStatus.FORBIDDEN:
            return Seen(None, hidden=True)
        raise
