"""A way to the API server that a test can freeze."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from pathlib import Path
from typing import Self

from webhook.sandbox.control_plane import ControlPlane


class Relay:
    """Passes connections on to an API server.

    Those that are frozen pass nothing any more, and stay open, as behind a proxy that has lost
    them; new ones work.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._target = plane.layout.ports["kube-apiserver"]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listening.getsockname()[1]
        self._frozen: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> int:
        """Freeze all connections that there are; how many they are."""
        self._frozen |= self._open
        return len(self._frozen)

    def kubeconfig(self, folder: Path) -> Path:
        """The administrator's kubeconfig, in this folder, for the way through here."""
        text = self._plane.kubeconfig.read_text()
        path = folder / "kubeconfig"
        path.write_text(text.replace(f":{self._target}\n", f":{self._port}\n"))
        assert str(self._port) in path.read_text()
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for each in {*self._open, *self._frozen}:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.add(client)
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            client,
            socket.create_connection(("127.0.0.1", self._target)) as server,
        ):
            other = {client: server, server: client}
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if client in self._frozen:
                        # What comes is swallowed: neither side hears of it.
                        threading.Event().wait()
                    if not data:
                        self._open.discard(client)
                        return
                    other[ready].sendall(data)
