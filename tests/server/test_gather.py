"""What is written within one turn of the loop leaves as one."""

from __future__ import annotations

import asyncio
from typing import cast

from webhook.server.gather import GatheringTransport


class Recorder:
    """A transport that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.told.append(data)

    def close(self) -> None:
        """Keep that too."""
        self.told.append("closed")

    def is_closing(self) -> bool:
        """As a transport says."""
        return "closed" in self.told


def gathering(recorder: Recorder) -> GatheringTransport:
    """The transport under test, over a recorder."""
    return GatheringTransport(cast("asyncio.Transport", recorder), asyncio.get_running_loop())


def test_what_is_written_in_one_turn_leaves_as_one_in_its_order() -> None:
    """Head and body of an answer; the next turn is another write."""

    async def main() -> list[object]:
        recorder = Recorder()
        transport = gathering(recorder)
        transport.write(b"head, ")
        transport.write(b"body")
        assert recorder.told == []
        await asyncio.sleep(0)
        transport.write(b"next")
        await asyncio.sleep(0)
        return recorder.told

    assert asyncio.run(main()) == [b"head, body", b"next"]


def test_what_is_kept_leaves_before_the_connection_closes() -> None:
    """An answer with Connection: close is not lost."""

    async def main() -> list[object]:
        recorder = Recorder()
        transport = gathering(recorder)
        transport.write(b"last words")
        transport.close()
        assert transport.is_closing()
        await asyncio.sleep(0)
        return recorder.told

    assert asyncio.run(main()) == [b"last words", "closed"]
