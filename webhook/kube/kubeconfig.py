"""The cluster that a person means: a kubeconfig, and a context of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from webhook.kube.client import Client

T = TypeVar("T")


class Kubeconfig(NamedTuple):
    """The cluster that a command reads, and how: --kubeconfig and --context, empty if not given;
    seconds until a request is given up; and what gets a line about each request."""

    given: Path | None = None
    context: str = ""
    timeout: float = 30.0
    trace: Callable[[str], None] | None = None

    @property
    def file(self) -> Path | None:
        """The file, else ~/.kube/config; None if $KUBECONFIG is set, or the file does not exist."""
        usual = Path.home() / ".kube" / "config"
        default_path = usual if not os.environ.get("KUBECONFIG") and usual.is_file() else None
        return self.given or default_path

    def client(self) -> Client:
        """Return a client of that cluster, as an asynchronous context manager."""
        # The import of the Kubernetes client takes time; --help does not need it.
        from webhook.kube.client import connect

        return connect(
            self.file, context=self.context, timeout=self.timeout, waits=True, trace=self.trace
        )

    def namespace(self) -> str:
        """Return the namespace of the context. Raises ClusterError."""
        from webhook.kube.config import default_namespace

        return default_namespace(self.file, context=self.context)

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a question, which gets a client of that cluster."""
        import asyncio

        async def answer() -> T:
            async with self.client() as client:
                return await question(client)

        return asyncio.run(answer())
