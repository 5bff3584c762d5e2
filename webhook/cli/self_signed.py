"""A certificate for development, made when the process starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

from certs.authority import new_authority
from certs.errors import CertificateError
from certs.issue import Names, issue_server
from certs.life import AUTHORITY_LIFETIME
from webhook.errors import ServingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from certs.pair import Pair


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """A certificate for localhost, and for `names` (DNS names or IP addresses).

    `ca_out` gets the certificate of the authority that signed it, as PEM.
    """

    names: Sequence[str] = ()
    ca_out: Path | None = None

    def make(self) -> Pair:
        """Make both. Raises ServingError if a name is unfit, or the file cannot be written."""
        now = datetime.now(UTC)
        authority = new_authority("fairlead serve --self-signed", now)
        addresses = [name for name in self.names if _is_address(name)]
        asked = Names(
            dns=("localhost", *(name for name in self.names if name not in addresses)),
            addresses=("127.0.0.1", "::1", *addresses),
        )
        try:
            # As long as its authority: nobody renews it while the process runs.
            pair = issue_server(authority, "fairlead", asked, now, lifetime=AUTHORITY_LIFETIME)
        except CertificateError as error:
            raise ServingError(f"--name: {error}") from error
        if self.ca_out:
            _write(self.ca_out, authority.certificate)
        return pair


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        # In one step, so that whoever waits for the file never reads half of it.
        part.replace(path)
    except OSError as error:
        raise ServingError(f"--ca-out {path}: {error.strerror}") from error


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
