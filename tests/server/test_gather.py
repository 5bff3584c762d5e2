"""What is written within one turn of the loop leaves as one, as far as the peer takes it."""

from __future__ import annotations

import asyncio
from typing import cast

from webhook.server.gather import PIECE, GatheringTransport


class Recorder:
    """A transport that keeps what it is told; `takes` says whether its peer reads."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.takes = True
        self.unwritten: list[int] = []
        self._buffer = 0

    def write(self, data: bytes) -> None:
        self.told.append(data)
        if not self.takes:
            self._buffer += len(data)

    def read(self) -> None:
        self._buffer = 0

    def get_write_buffer_size(self) -> int:
        return self._buffer

    def close(self) -> None:
        self.told.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.told


def gathering(recorder: Recorder, below: Recorder | None = None) -> GatheringTransport:
    return GatheringTransport(
        cast("asyncio.Transport", recorder),
        asyncio.get_running_loop(),
        below=cast("asyncio.Transport", below or recorder),
        report=recorder.unwritten.append,
    )


async def test_what_is_written_in_one_turn_leaves_as_one_in_its_order() -> None:
    recorder = Recorder()
    transport = gathering(recorder)
    transport.write(b"head, ")
    transport.write(b"body")
    assert recorder.told == []
    pending = [transport.pending]
    await asyncio.sleep(0)
    pending.append(transport.pending)
    assert pending == [True, False]
    transport.write(b"next")
    await asyncio.sleep(0)
    assert recorder.told == [b"head, body", b"next"]


async def test_what_is_kept_leaves_before_the_connection_closes() -> None:
    """An answer with Connection: close is not lost, and nothing is written behind it."""
    recorder = Recorder()
    transport = gathering(recorder)
    transport.write(b"last words")
    transport.close()
    assert transport.is_closing()
    transport.write(b"more")
    transport.close()
    await asyncio.sleep(0)
    assert recorder.told == [b"last words", "closed"]


async def test_what_the_peer_does_not_take_waits_in_one_piece() -> None:
    """No more is passed on than the connection has room for; the rest when it has written that."""
    recorder = Recorder()
    transport = gathering(recorder)
    recorder.takes = False
    transport.write(b"a" * PIECE + b"b" * PIECE + b"c")
    await asyncio.sleep(0)
    assert recorder.told == [b"a" * PIECE]
    # What is passed on is still held, as one object with the rest.
    assert recorder.unwritten[-1] >= 2 * PIECE + 1
    transport.close()
    recorder.read()
    transport.writable(True)
    assert "closed" not in recorder.told
    recorder.takes = True
    recorder.read()
    transport.writable(True)
    await asyncio.sleep(0)
    assert recorder.told == [b"a" * PIECE, b"b" * PIECE, b"c", "closed"]
    assert recorder.unwritten[-1] == 0


async def test_a_lost_connection_leaves_nothing() -> None:
    """Of four megabytes that nobody read, too; and nobody is told any more."""
    recorder = Recorder()
    transport = gathering(recorder)
    recorder.takes = False
    transport.write(b"a" * (2 * PIECE))
    await asyncio.sleep(0)
    recorder.read()
    recorder.unwritten.clear()
    transport.drop()
    transport.write(b"more")
    transport.close()
    transport.writable(True)
    await asyncio.sleep(0)
    assert not transport.pending
    assert recorder.unwritten == []


async def test_what_a_broken_connection_cannot_take_is_dropped() -> None:
    recorder = Recorder()
    transport = gathering(recorder)
    recorder.takes = False
    transport.write(b"a" * (2 * PIECE))
    await asyncio.sleep(0)
    recorder.close()
    recorder.read()
    transport.writable(True)
    await asyncio.sleep(0)
    assert not transport.pending
    assert recorder.told == [b"a" * PIECE, "closed"]
    assert recorder.unwritten[-1] == 0


async def test_nothing_is_encrypted_for_a_connection_that_was_ended() -> None:
    """TLS hears of it later, and would take it all."""
    tls, below = Recorder(), Recorder()
    transport = gathering(tls, below)
    transport.write(bytes(10 * PIECE))
    below.close()
    await asyncio.sleep(0)
    assert not transport.pending
    assert tls.told == []
