"""Where the served certificate comes from: files, or a Secret; the last valid one is kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.kept import CERTIFICATE, PRIVATE_KEY
from webhook.errors import ServingError, UnreadableInput
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certs.kept import Serving
    from certs.pair import Pair
    from webhook.server.tls import ServedCertificate, ServerTls

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in two files, as in a mounted Secret: a reload.Source."""

    certificate: Path
    private_key: Path

    def read(self) -> dict[str, bytes]:
        """Return both files' contents by path; raise UnreadableInput."""
        return _read((self.certificate, self.private_key), "it is needed to serve TLS")

    def signature(self) -> None:
        """Return None: reading two small files is as fast as a check for changes."""

    def swap_into(self, tls: ServerTls) -> Callable[[dict[str, bytes]], ServedCertificate]:
        """Return the compile function of a Reloader, which swaps the files into `tls`."""
        certificate, private_key = str(self.certificate), str(self.private_key)
        return lambda contents: tls.swap(contents[certificate], contents[private_key])


@dataclass(frozen=True, slots=True)
class AuthoritiesFile:
    """The authorities of permitted clients, in one file: a reload.Source."""

    path: Path

    def read(self) -> dict[str, bytes]:
        """Return the file's content by path; raise UnreadableInput."""
        return _read((self.path,), "it decides which clients are accepted")

    def signature(self) -> None:
        """Return None: reading a small file is as fast as a check for changes."""

    def trust_in(self, tls: ServerTls) -> Callable[[dict[str, bytes]], int]:
        """Return the compile function of a Reloader, which makes `tls` trust the authorities."""
        return lambda contents: tls.trust_clients(contents[str(self.path)])


def _read(paths: tuple[Path, ...], need: str) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    problems: list[str] = []
    for path in paths:
        try:
            contents[str(path)] = path.read_bytes()
        except OSError as error:
            problems.append(f"{path}: {error.strerror}; {need}")
    if problems:
        raise UnreadableInput(problems)
    return contents


class CertificateFromSecret:
    """The certificate in a Secret, updated by a watch; used only on the event loop's thread.

    `where` is the Secret's namespace/name. `on_served` is called with each accepted certificate,
    `on_refused` for each rejected one.
    """

    def __init__(
        self,
        where: str,
        tls: ServerTls,
        *,
        on_served: Callable[[ServedCertificate], None] = lambda _served: None,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._where = where
        self._tls = tls
        self._on_served = on_served
        self._on_refused = on_refused
        self._pair: Pair | None = None
        self._bundle = b""
        self._trouble = self._absent()

    @property
    def bundle(self) -> bytes:
        """The Secret's `ca.crt`, which clients must trust; empty if it has none."""
        return self._bundle

    def offered(self, kept: Serving | None) -> None:
        """Use the Secret's current content; None: it was deleted. Raises nothing."""
        if kept is None:
            self._bundle, self._trouble = b"", self._absent()
            _logger.error("certificate gone", extra={"error": self._trouble})
            return
        self._bundle = kept.bundle
        if kept.leaf == self._pair:
            self._trouble = ""
            return
        try:
            self._serve(kept.leaf)
        except ServingError as error:
            self._trouble = f"Secret {self._where} refused: {error}"
            _logger.error(
                "certificate refused, %s",
                "the last good one serves on" if self._pair else "there is none to serve",
                extra={"secret": self._where, "error": str(error)},
            )
            self._on_refused()

    def condition(self) -> Condition:
        """Return whether there is a certificate, and the problem with a newer one."""
        served = self._tls.condition()
        if not self._trouble:
            return served
        if self._pair is None:
            return Condition(ready=False, reason=self._trouble)
        return Condition(served.ready, f"{served.reason}; {self._trouble}")

    def _serve(self, pair: Pair) -> None:
        missing = [
            key
            for key, content in ((CERTIFICATE, pair.certificate), (PRIVATE_KEY, pair.private_key))
            if not content
        ]
        if missing:
            raise ServingError(f"it has no {' and no '.join(missing)}")
        served = self._tls.swap(pair.certificate, pair.private_key)
        self._pair, self._trouble = pair, ""
        _logger.info(
            "certificate loaded",
            extra={"secret": self._where, "serial": f"{served.serial_number:x}"},
        )
        self._on_served(served)

    def _absent(self) -> str:
        return (
            f"Secret {self._where} does not exist: `fairlead controller --certificates` makes it, "
            f"or cert-manager; or create it of type kubernetes.io/tls"
        )
