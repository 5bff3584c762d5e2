"""What the work on an installation reports to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Progress(Protocol):
    """Somebody who waits, or nobody. `webhook.sandbox.progress` has both."""

    def step(self, what: str, about: int | None = None) -> AbstractContextManager[None]:
        """Surrounds one piece of work; `about` is its rough duration in seconds, if known."""

    def note(self, text: str) -> None:
        """Says something that takes no time."""
