"""From PEM in memory to an SSLContext, which reads files only, leaving no key on a disk."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from certs.pair import Pair


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair into the context; raise ssl.SSLError if OpenSSL refuses it."""
    if sys.platform == "linux":
        load_from_memory(context, pair)
    else:
        load_from_file(context, pair)


if sys.platform == "linux":

    def load_from_memory(context: ssl.SSLContext, pair: Pair) -> None:
        """Load the pair by a file that exists in memory only, which a read-only root allows."""
        file = os.memfd_create("fairlead-tls", os.MFD_CLOEXEC)
        try:
            with open(file, "wb", closefd=False) as memory:
                memory.write(_joined(pair))
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)


def load_from_file(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair by a file that only this user may read, and that is deleted at once."""
    with tempfile.TemporaryDirectory(prefix="fairlead-tls-") as folder:
        # mkdtemp makes the folder 0700; the file is 0600 from its first byte on.
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(_joined(pair))
        context.load_cert_chain(path)


def _joined(pair: Pair) -> bytes:
    return pair.private_key.rstrip() + b"\n" + pair.certificate
