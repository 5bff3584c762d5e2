"""What a process knows once it has read its variables and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from webhook.frameworks.framework import FILES

Env: TypeAlias = Mapping[str, str]


class View(NamedTuple):
    """cluster: what all processes of a run have to agree on.

    place: which one this is: a rank, or a role with an index; None if it is not told.
    hosts: every host that it may connect to.
    size: how many places there are; None if it is not told.
    """

    cluster: object
    place: object
    hosts: frozenset[str]
    size: int | None = None


def address(text: str) -> tuple[str, int]:
    """host:port, as every framework here splits it: at the last colon."""
    host, _, port = text.rpartition(":")
    number = int(port)
    assert host
    assert 0 < number < 65536
    return host, number


def opened(path: str, files: Mapping[str, str]) -> str:
    """A file of the run's ConfigMap, by the path under which a container sees it."""
    folder, _, name = path.rpartition("/")
    assert folder == FILES
    return files[name]
