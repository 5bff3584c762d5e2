"""Which clients may call: by the names in the certificates that they were let in with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Callers:
    """Clients by name. No names: whoever has a certificate that TLS let in."""

    names: frozenset[str]

    def refusal(self, certificate: Mapping[str, Any]) -> str:
        """Say why a client may not call; "" if it may.

        `certificate` is what ssl's getpeercert() tells. A client's names are the common name of
        its subject and the DNS names of its subjectAltName.
        """
        seen = _names(certificate)
        if not self.names or self.names.intersection(seen):
            return ""
        return (
            f"the client's certificate is for {', '.join(seen) or 'nobody'}; "
            f"may call: {', '.join(sorted(self.names))} (fairlead serve --client-name)"
        )


def _names(certificate: Mapping[str, Any]) -> list[str]:
    common = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    return [
        *common,
        *(name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"),
    ]
