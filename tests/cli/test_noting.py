"""Notes on stderr."""

from __future__ import annotations

import pytest

from webhook.cli.noting import tell


def test_a_note_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It may hold words of others: of the API server, or of who wrote an object."""
    tell(["plain", "\x1b[2Jgone"])
    assert capsys.readouterr() == ("", "note: plain\nnote: \\x1b[2Jgone\n")
