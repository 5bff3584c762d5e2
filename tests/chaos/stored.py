"""The pods that etcd holds, counted and taken out again, so that a long run does not fill it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.load import MATCHED, OTHER
from tests.cluster import etcd
from webhook import names
from webhook.sandbox.control_plane import ControlPlane

_STAMP: Final = names.PLACEMENT.encode()
_PAGE: Final = 2000


@dataclass
class Stored:
    """What was found so far.

    unplaced: names of pods of a run that do not carry the stamp.
    """

    matched: int = 0
    other: int = 0
    unplaced: list[str] = field(default_factory=list)


class Store:
    """The pods of a load in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._root = f"/registry/pods/{namespace}/"
        self.found = Stored()

    def sweep(self, up_to: int) -> None:
        """Count the load's pods with numbers below `up_to`, and take them out of etcd.

        The API server learns of it by its own watch, as of any deletion.
        """
        for prefix in (MATCHED, OTHER):
            begin, end = f"{self._root}{prefix}", f"{self._root}{prefix}{up_to:08}"
            while page := list(self._pods(begin, end)):
                for name, stamped in page:
                    self._count(name, stamped)
                etcd.erase(self._plane, begin, f"{self._root}{page[-1][0]}\0")

    def _count(self, name: str, stamped: bool) -> None:
        if name.startswith(OTHER):
            self.found.other += 1
            return
        self.found.matched += 1
        if not stamped:
            self.found.unplaced.append(name)

    def _pods(self, begin: str, end: str) -> Iterator[tuple[str, bool]]:
        for entry in etcd.read(self._plane, begin, end, limit=_PAGE):
            key = base64.b64decode(entry["key"]).decode()
            # A pod is protobuf, in which a text stands as it is.
            yield key.removeprefix(self._root), _STAMP in base64.b64decode(entry["value"])
