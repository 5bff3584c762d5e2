"""Single files that are watched: what a Reloader reads of certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webhook.server.tls import ServedCertificate, ServerTls


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in two files, as a mounted Secret has them: a reload.Source."""

    certificate: Path
    private_key: Path

    def read(self) -> dict[str, bytes]:
        """Return both files' contents by their paths; raise UnreadableInput."""
        return _read((self.certificate, self.private_key), "it is needed to serve TLS")

    def signature(self) -> None:
        """Return None: two small files are read as fast as they are looked at."""

    def swap_into(self, tls: ServerTls) -> Callable[[dict[str, bytes]], ServedCertificate]:
        """Return what a Reloader compiles with: it swaps what was read into `tls`."""
        certificate, private_key = str(self.certificate), str(self.private_key)
        return lambda contents: tls.swap(contents[certificate], contents[private_key])


@dataclass(frozen=True, slots=True)
class AuthoritiesFile:
    """The authorities whose clients are let in, in one file: a reload.Source."""

    path: Path

    def read(self) -> dict[str, bytes]:
        """Return the file's content by its path; raise UnreadableInput."""
        return _read((self.path,), "it says which clients are let in")

    def signature(self) -> None:
        """Return None: a small file is read as fast as it is looked at."""

    def trust_in(self, tls: ServerTls) -> Callable[[dict[str, bytes]], int]:
        """Return what a Reloader compiles with: it has `tls` trust what was read."""
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
