"""A reflector whose watch brings bytes that are no events, or not all of them."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.examples import examples
from tests.kube.fake_api import Answer, until
from tests.kube.scripted import events, listing, stage, thing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.property
def test_a_stream_cut_at_any_byte_applies_whole_events_only(tmp_path: Path) -> None:
    """The next watch goes on after the last whole event, whether the end was rude or polite.

    `make test` cuts at some bytes and at the edges, `make test-beyond` at each.
    """
    lines = [
        json.dumps({"type": "ADDED", "object": thing(name, version, "ü")}).encode() + b"\n"
        for name, version in [("a", 11), ("b", 12)]
    ]
    stream = b"".join(lines)

    def cut_watch(cut: int, polite: bool) -> Any:
        async def watch(answer: Answer) -> None:
            await answer.begin()
            if cut:
                await answer.chunk(stream[:cut])
            if polite:
                await answer.end()

        return watch

    async def run(cut: int, polite: bool) -> None:
        async with stage(
            tmp_path, lists=[listing(10)], watches=[cut_watch(cut, polite)], pauses=1
        ) as played:
            # What ends well after whole events is no failure: the next watch begins at once.
            well = polite and cut in (len(lines[0]), len(stream))
            await until(lambda: len(played.watches) == 2 if well else len(played.pauses) == 1)
            whole = sum(cut >= edge for edge in (len(lines[0]), len(stream)))
            assert played.values() == dict(list({"a": "ü", "b": "ü"}.items())[:whole])
            assert (played.reflector.last_error is None) == well

    async def resumed() -> None:
        watches = [cut_watch(len(lines[0]) + 20, polite=False)]
        async with stage(tmp_path, lists=[listing(10)], watches=watches) as played:
            await until(lambda: len(played.watches) == 2)
            assert played.watches[1].query["resourceVersion"] == "11"
            assert len(played.lists) == 1

    cuts = range(len(stream) + 1)
    for cut in random.sample(cuts, examples(len(cuts))):
        asyncio.run(run(cut, polite=cut % 8 == 0))
    for edge in (len(lines[0]), len(stream)):
        for cut in (edge - 1, edge):
            asyncio.run(run(cut, polite=True))
            asyncio.run(run(cut, polite=False))
    asyncio.run(resumed())


async def test_a_line_of_many_megabytes_is_read(tmp_path: Path) -> None:
    """An object may be larger as JSON than in etcd."""
    large = "x" * (5 * 2**20)

    watch = events(("ADDED", thing("a", 11, large)), ends=False)
    async with stage(tmp_path, lists=[listing(10)], watches=[watch]) as played:
        await until(lambda: played.values() == {"a": large})


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[]\n",
        b"\n",
        b'{"type": "ADDED"}\n',
        b'{"type": "ADDED", "object": null}\n',
        b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}\n',
        b'{"type": "ADDED", "object": {"metadata": null}}\n',
        b'{"type": "RENAMED", "object": {"metadata": {"resourceVersion": "11"}}}\n',
    ],
)
async def test_an_event_that_cannot_be_read_makes_it_list_again(
    tmp_path: Path, line: bytes
) -> None:
    """What it said is not known, so only a list can tell."""

    async def watch(answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(line)
        await asyncio.sleep(1000)

    lists = [listing(10), listing(20, thing("b", 15, "x"))]
    async with stage(tmp_path, lists=lists, watches=[watch]) as played:
        await until(lambda: len(played.watches) == 2)
        assert played.values() == {"b": "x"}
        assert played.watches[1].query["resourceVersion"] == "20"
