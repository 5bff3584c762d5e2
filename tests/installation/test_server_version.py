"""What a cluster's version lacks."""

from __future__ import annotations

import asyncio

import pytest

from tests.wording import mentions
from webhook.errors import InstallationError
from webhook.installation.server_version import check_server


class Server:
    """A client of an API server of this version."""

    def __init__(self, version: str) -> None:
        self.version = version

    async def get(self, path: str) -> dict[str, str]:
        assert path == "/version"
        return {"gitVersion": self.version}


class Notes:
    """What an installation reports."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def check(version: str) -> list[str]:
    """The notes for a server of this version."""
    notes = Notes()
    asyncio.run(check_server(Server(version), notes))  # type: ignore[arg-type]
    return notes.notes


def test_an_installation_reports_what_an_older_cluster_lacks() -> None:
    """With the version that has it; a cluster with all of it needs no note."""
    (found,) = check("v1.33.4")
    mentions(found, "v1.33.4", "generate map", "1.36", "webhook")
    assert check("v1.36.3") == check("v1.37.0") == []


def test_a_cluster_that_is_too_old_is_refused() -> None:
    """Before anything is written."""
    with pytest.raises(InstallationError) as error:
        check("v1.29.9")
    mentions(str(error.value), "v1.29.9", "1.30")
