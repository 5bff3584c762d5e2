"""Show the progress of long work."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


class Progress(Protocol):
    """What the sandbox reports to."""

    def step(self, what: str, about: int | None = None) -> AbstractContextManager[None]:
        """Surrounds one piece of work; `about` is its rough duration in seconds, if known."""

    def note(self, text: str) -> None:
        """Says something that takes no time."""


class Silent:
    """Reports nothing, for callers with no person before them."""

    @contextmanager
    def step(self, what: str, about: int | None = None) -> Iterator[None]:
        """Does nothing around the work."""
        del what, about
        yield

    def note(self, text: str) -> None:
        """Does nothing."""


class Lines:
    """Writes to a stream: one line that lives on a terminal, plain lines anywhere else.

    A pipe gets a line when a step starts, one a minute while it lasts, and one when it ends, so
    that a build log shows that something is alive. Steps do not nest.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()

    @contextmanager
    def step(self, what: str, about: int | None = None) -> Iterator[None]:
        """Surrounds the work with its start, its duration so far, and its end or failure."""
        started = time.monotonic()
        over = threading.Event()
        expected = f" (about {duration(about)})" if about else ""
        self._write(f"{what}{expected} ...", lasting=not self._live)
        ticker = threading.Thread(
            target=self._tick, args=(what, expected, started, over), daemon=True
        )
        ticker.start()
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            over.set()
            ticker.join()
            self._write(f"{what}: {outcome} in {duration(time.monotonic() - started)}")

    def note(self, text: str) -> None:
        """Writes the text as a line of its own."""
        self._write(text)

    def _tick(self, what: str, expected: str, started: float, over: threading.Event) -> None:
        while not over.wait(1 if self._live else 60):
            elapsed = duration(time.monotonic() - started)
            self._write(f"{what}: {elapsed}{expected} ...", lasting=not self._live)

    def _write(self, text: str, *, lasting: bool = True) -> None:
        # "\x1b[K" clears what a longer line before this one left behind.
        start = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{start}{text}" + ("\n" if lasting else ""))
        self._stream.flush()


def duration(seconds: float) -> str:
    """Format a duration: 0.4 s, 52 s, 4 min 30 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
