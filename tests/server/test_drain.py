"""A process that is told to stop leaves without failing a single request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.server.serving import begin, post, running

if TYPE_CHECKING:
    pass

# Longer than any test takes, where the grace time must not end by itself.
NEVER = 3600.0


def test_a_request_that_never_ends_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    """A client that stalls holds the end for so long and no longer, and the log tells of it."""
    with running(finish_seconds=0) as server:
        idle, stalled = server.connect(), server.connect()
        assert post(idle, b"idle").read() == b"idle"
        begin(stalled, b"o")
        assert post(idle, b"again").read() == b"again"
    idle.close()
    stalled.close()
    assert "requests cut off" in caplog.messages


def test_answers_keep_their_own_connection_header_until_draining() -> None:
    """Before the drain an answer's headers are the app's, and the connection serves on."""
    with running(grace=NEVER) as server:
        connection = server.connect()
        for body in (b"one", b"two"):
            response = post(connection, body)
            assert response.read() == body
            assert response.headers["Connection"] is None
        connection.close()
        server.begin_drain()
        server.begin_drain()
