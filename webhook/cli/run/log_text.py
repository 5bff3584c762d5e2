"""Bytes of a log as lines of text, and lines with the name of their replica before them."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Of a line that never ends, so much is shown as one.
_LONGEST: Final = 2**20
_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")


class LogLines:
    """Cuts one log into lines. What is no UTF-8 is replaced.

    A progress bar writes its line anew after each carriage return: only its last state counts.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that `chunk` completes."""
        *lines, self._rest = (self._rest + self._decode(chunk)).split("\n")
        if len(self._rest) > _LONGEST:
            lines.append(self._rest)
            self._rest = ""
        return [_last_state(line) for line in lines]

    def finish(self) -> list[str]:
        """The line that the end of the log completes, if there is one."""
        rest, self._rest = self._rest + self._decode(b"", final=True), ""
        return [_last_state(rest)] if rest else []


class Prefixes:
    """The names of replicas, of equal width, each in a colour of its own if there are colours."""

    def __init__(self, names: Iterable[str], *, coloured: bool) -> None:
        self._width = max(map(len, names), default=0)
        self._coloured = coloured
        self._known: dict[str, str] = {}

    def put(self, name: str, lines: Sequence[str]) -> str:
        """`lines` as text, each with the name before it and a newline after it."""
        prefix = self._prefix(name)
        return "".join(f"{prefix} {line}\n" if line else f"{prefix}\n" for line in lines)

    def _prefix(self, name: str) -> str:
        if name not in self._known:
            text = f"{name:<{self._width}} |"
            colour = _COLOURS[len(self._known) % len(_COLOURS)]
            self._known[name] = click.style(text, fg=colour) if self._coloured else text
        return self._known[name]


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
