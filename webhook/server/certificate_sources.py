"""Where the served certificate comes from: files, or a Secret; the last valid one is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certs.kept import CERTIFICATE, PRIVATE_KEY
from webhook.errors import ServingError, UnreadableInput
from webhook.server.readiness import Condition
from webhook.server.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from certs.kept import Serving
    from webhook.server.tls import ServedCertificate, ServerTls


def certificate_of_files(
    certificate: Path, private_key: Path, tls: ServerTls, **callbacks: Any
) -> Reloader[ServedCertificate]:
    """Return the reloader of a certificate and its key in two files, as in a mounted Secret."""
    return _reloader(
        lambda: _read((certificate, private_key), "it is needed to serve TLS"),
        lambda contents: tls.swap(contents[str(certificate)], contents[str(private_key)]),
        **callbacks,
    )


def authorities_of_file(path: Path, tls: ServerTls) -> Reloader[int]:
    """Return the reloader of the authorities of permitted clients, in one file."""
    return Reloader(
        "client authorities",
        lambda: _read((path,), "it decides which clients are accepted"),
        lambda contents: tls.trust_clients(contents[str(path)]),
    )


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
    `on_refused` for each rejected one, and if the Secret was deleted. `bundle` is the Secret's
    `ca.crt`, which clients must trust; empty if it has none.
    """

    def __init__(
        self,
        where: str,
        tls: ServerTls,
        **callbacks: Any,
    ) -> None:
        self._where = where
        self._tls = tls
        self._kept: Serving | None = None
        self.bundle = b""
        self._reloader = _reloader(self._read, self._swap, **callbacks)

    def offered(self, kept: Serving | None) -> None:
        """Use the Secret's current content; None: it was deleted. Raises nothing."""
        self._kept = kept
        self.bundle = kept.bundle if kept else b""
        self._reloader.poll()

    def refused(self) -> bool:
        """Return whether the Secret's newest content was rejected."""
        return self._reloader.refused()

    def _read(self) -> dict[str, bytes]:
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


def _reloader(
    read: Callable[[], dict[str, bytes]],
    swap: Callable[[dict[str, bytes]], ServedCertificate],
    *,
    on_served: Callable[[ServedCertificate], None] = lambda _served: None,
    on_refused: Callable[[], None] = lambda: None,
) -> Reloader[ServedCertificate]:
    """Return the reloader of a certificate, which people identify by its serial number."""
    return Reloader(
        "certificate",
        read,
        swap,
        digest_of=lambda served: f"{served.serial_number:x}",
        on_loaded=lambda served, _state: on_served(served),
        on_refused=lambda _state: on_refused(),
    )
