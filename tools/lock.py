"""Reads a lock: a requirements file in which every package has a version and hashes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PINNED: Final = re.compile(r"([A-Za-z0-9][\w.-]*)==([^\s;\\]+)\s*(?:;\s*(.*))?")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Locked(NamedTuple):
    """One package. `marker` says where it is installed at all; empty: everywhere.

    `hashes` are SHA-256, in hexadecimal, one for each file that this version was published as.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def read(text: str) -> list[Locked]:
    """Return the packages of a lock, in its order. Raises ValueError for a line that is none of a
    lock.
    """
    packages = []
    # A backslash ends a line that goes on; comments stand on lines of their own.
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    for entry in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        pinned, *hashes = re.split(r"\s+(?=--hash=)", entry.strip())
        package = _PINNED.fullmatch(pinned.strip())
        given = [_HASH.fullmatch(word) for word in hashes]
        if package is None or not given or None in given:
            raise ValueError(f"want name==version --hash=sha256:…, not {entry.strip()[:100]!r}")
        name, version, marker = package.groups()
        sums = tuple(match.group(1) for match in given if match)
        packages.append(Locked(name.lower(), version, (marker or "").strip(), sums))
    return packages
