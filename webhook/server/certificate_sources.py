"""Where the served certificate comes from: files, or a Secret; the last valid one is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from certs.kept import CERTIFICATE, PRIVATE_KEY
from webhook.errors import ServingError, UnreadableInput
from webhook.server.readiness import Condition
from webhook.server.reload import Reloader, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from certs.kept import Serving
    from webhook.server.tls import ServedCertificate, ServerTls


@dataclass(frozen=True, slots=True)
class CertificateFiles(Source):
    """A certificate and its key in two files, as in a mounted Secret."""

    certificate: Path
    private_key: Path

    def read(self) -> dict[str, bytes]:
        """Return both files' contents by path; raise UnreadableInput."""
        return _read((self.certificate, self.private_key), "it is needed to serve TLS")

    def swap_into(self, tls: ServerTls) -> Callable[[dict[str, bytes]], ServedCertificate]:
        """Return the compile function of a Reloader, which swaps the files into `tls`."""
        certificate, private_key = str(self.certificate), str(self.private_key)
        return lambda contents: tls.swap(contents[certificate], contents[private_key])


@dataclass(frozen=True, slots=True)
class AuthoritiesFile(Source):
    """The authorities of permitted clients, in one file."""

    path: Path

    def read(self) -> dict[str, bytes]:
        """Return the file's content by path; raise UnreadableInput."""
        return _read((self.path,), "it decides which clients are accepted")

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


class CertificateFromSecret(Source):
    """The certificate in a Secret, updated by a watch; used only on the event loop's thread.

    `where` is the Secret's namespace/name. `on_served` is called with each accepted certificate,
    `on_refused` for each rejected one, and if the Secret was deleted. `bundle` is the Secret's
    `ca.crt`, which clients must trust; empty if it has none.
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
        self._kept: Serving | None = None
        self.bundle = b""
        self._reloader = reloader_of(self, self._swap, on_served, on_refused)

    def offered(self, kept: Serving | None) -> None:
        """Use the Secret's current content; None: it was deleted. Raises nothing."""
        self._kept = kept
        self.bundle = kept.bundle if kept else b""
        self._reloader.poll()

    def read(self) -> dict[str, bytes]:
        """Return the Secret's certificate and key; raise UnreadableInput without a Secret."""
        if self._kept is None:
            raise UnreadableInput([self._absent()])
        leaf = self._kept.leaf
        return {CERTIFICATE: leaf.certificate, PRIVATE_KEY: leaf.private_key}

    def condition(self) -> Condition:
        """Return whether there is a certificate, and the problem with a newer one."""
        served, state = self._tls.condition(), self._reloader.state()
        trouble = self._absent() if state.outcome == "pending" else state.error
        if not trouble:
            return served
        if state.loaded_at is None:
            return Condition(ready=False, reason=trouble)
        return Condition(served.ready, f"{served.reason}; {trouble}")

    def _swap(self, contents: Mapping[str, bytes]) -> ServedCertificate:
        missing = [key for key, content in contents.items() if not content]
        try:
            if missing:
                raise ServingError(f"it has no {' and no '.join(missing)}")
            return self._tls.swap(contents[CERTIFICATE], contents[PRIVATE_KEY])
        except ServingError as error:
            raise ServingError(f"Secret {self._where} refused: {error}") from error

    def _absent(self) -> str:
        return (
            f"Secret {self._where} does not exist: `fairlead controller --certificates` makes it, "
            f"or cert-manager; or create it of type kubernetes.io/tls"
        )


def reloader_of(
    source: Source,
    swap: Callable[[dict[str, bytes]], ServedCertificate],
    on_served: Callable[[ServedCertificate], None],
    on_refused: Callable[[], None],
) -> Reloader[ServedCertificate]:
    """Return the reloader of a certificate, which people identify by its serial number."""
    return Reloader(
        "certificate",
        source,
        swap,
        digest_of=lambda served: f"{served.serial_number:x}",
        on_loaded=lambda served, _state: on_served(served),
        on_refused=lambda _state: on_refused(),
    )
