"""Parts of pages as windows show them, and how they differ from what a window has.

A window asks again and again, and names the version that it has. So it holds no connection, of
which a browser has six for all its windows, and windows with the same page share what is made.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from difflib import SequenceMatcher
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

# A part is made again after so many seconds, or after a change and the lesser number.
_MOST_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 1.0
# Parts that are kept, and versions of each that a window may have.
_MOST_PARTS: Final = 100
_MOST_VERSIONS: Final = 4

# From, until, and the lines in their place; the last first.
Difference = tuple[int, int, list[str]]


class Shown(NamedTuple):
    """A part with its versions, the newest last: lines by their hash."""

    versions: OrderedDict[str, Sequence[str]]

    def response(self, old_version: str) -> Response:
        """Return what differs from the version that a window has, as JSON; 304 for nothing."""
        version, lines = next(reversed(self.versions.items()))
        headers = {"etag": version}
        if old_version == version:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        old = self.versions.get(old_version)
        parts = differences(old or [], lines)
        return JSONResponse({"whole": old is None, "parts": parts}, headers=headers)


class _Kept:
    def __init__(self) -> None:
        self.shown = Shown(OrderedDict())
        self.turn = asyncio.Lock()
        self.change = -1
        self.made = 0.0


class ShownParts:
    """The parts that windows look at, by their addresses."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def look(self, address: str, change: int, make: Callable[[], Awaitable[str]]) -> Shown:
        """Return the part; `make` makes its HTML. `change` is a number that rises with changes."""
        kept = self._kept.pop(address, None) or _Kept()
        self._kept[address] = kept
        while len(self._kept) > _MOST_PARTS:
            self._kept.popitem(last=False)
        async with kept.turn:
            least = _LEAST_SECONDS if change != kept.change else _MOST_SECONDS
            if not kept.shown.versions or time.monotonic() - kept.made >= least:
                html = await make()
                lines = html.split("\n")
                kept.change, kept.made = change, time.monotonic()
                version = f'"{hashlib.sha256(html.encode()).hexdigest()[:16]}"'
                kept.shown.versions.pop(version, None)
                kept.shown.versions[version] = lines
                while len(kept.shown.versions) > _MOST_VERSIONS:
                    kept.shown.versions.popitem(last=False)
        return kept.shown


def differences(old: Sequence[str], new: Sequence[str]) -> list[Difference]:
    """Return what makes the new lines of the old ones, the last first."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    parts = [
        (head + begin, head + end, list(after[first:last]))
        for kind, begin, end, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]
    return parts[::-1]
