"""Show the progress of long work."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator


class Progress:
    """Progress reports; by itself, for callers without a user, it reports nothing."""

    @contextmanager
    def step(self, what: str, about: int | None = None) -> Iterator[None]:
        """Report one step while it runs; `about` is its rough duration in seconds, if known."""
        del what, about
        yield

    def note(self, text: str) -> None:
        """Report a fact that is not a step."""


class Lines(Progress):
    """Writes to a stream: one updated line on a terminal, otherwise plain lines.

    A pipe gets a line when a step starts, one a minute while it runs, and one when it ends, so
    that a build log shows progress. Steps do not nest. Without `steps`, only facts are written.
    """

    def __init__(self, stream: TextIO, *, steps: bool = True) -> None:
        self._stream = stream
        self._steps = steps
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"

    @contextmanager
    def step(self, what: str, about: int | None = None) -> Iterator[None]:
        """Write the step's start, its duration so far, and its end or failure."""
        if not self._steps:
            yield
            return
        started = time.monotonic()
        over = threading.Event()
        expected = f" (about {duration(about)})" if about else ""
        self._write(f"{what}{expected} ...", lasting=not self._live)
        ticker = threading.Thread(
            target=self._tick, args=(what, expected, started, over), daemon=True
        )
        ticker.start()
        # By Ctrl-C.
        outcome = "interrupted"
        try:
            yield
            outcome = "done"
        except Exception:
            outcome = "failed"
            raise
        finally:
            over.set()
            ticker.join()
            self._write(f"{what}: {outcome} in {duration(time.monotonic() - started)}")

    def note(self, text: str) -> None:
        """Write the text as a separate line."""
        self._write(text)

    def _tick(self, what: str, expected: str, started: float, over: threading.Event) -> None:
        while not over.wait(1 if self._live else 60):
            elapsed = duration(time.monotonic() - started)
            self._write(f"{what}: {elapsed}{expected} ...", lasting=not self._live)

    def _write(self, text: str, *, lasting: bool = True) -> None:
        # "\x1b[K" clears the rest of a longer previous line.
        start = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{start}{text}" + ("\n" if lasting else ""))
        self._stream.flush()


def duration(seconds: float) -> str:
    """Return seconds as text for people: 0.4 s, 52 s, 4 min 30 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
