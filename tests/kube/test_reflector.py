"""Keeping a cache current by list and watch, whatever the stream brings."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.kube.fake_api import Answer, until
from tests.kube.scripted import events, listing, refused, stage, thing
from webhook.backoff import WATCH_DELAYS, Delays
from webhook.errors import ClusterError
from webhook.kube.cache import Change
from webhook.kube.client import METADATA, METADATA_LIST
from webhook.kube.watch_stream import Lines

GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


def bookmark(version: int) -> tuple[str, dict[str, Any]]:
    return "BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version)}}


async def test_a_watch_begins_where_the_list_was(tmp_path: Path) -> None:
    """It asks for bookmarks, and to be ended by the server after five to ten minutes."""
    async with stage(tmp_path, lists=[listing(10, thing("a", 5, "x"))], watches=[]) as played:
        await played.cache.wait_synced()
        await until(lambda: len(played.watches) == 1)
        assert played.values() == {"a": "x"}
        query = played.watches[0].query
        assert query["resourceVersion"] == "10"
        assert query["allowWatchBookmarks"] == "true"
        assert 300 <= int(query["timeoutSeconds"]) <= 600
        assert "timeout" not in query


async def test_metadata_alone_is_asked_for_where_that_is_enough(tmp_path: Path) -> None:
    """Of the list and of the watch; a server that cannot do it sends the whole."""
    async with stage(tmp_path, lists=[listing(10)], watches=[], metadata_only=True) as played:
        await until(lambda: len(played.watches) == 1)
        forms = [each.headers["accept"] for each in (*played.lists, *played.watches)]
        assert forms == [METADATA_LIST, METADATA]


async def test_events_change_the_cache(tmp_path: Path) -> None:
    watch = events(
        ("ADDED", thing("b", 11, "new")),
        ("MODIFIED", thing("a", 12, "changed")),
        ("DELETED", thing("c", 13, "last")),
        ends=False,
    )

    first = listing(10, thing("a", 5, "old"), thing("c", 6, "here"))
    async with stage(tmp_path, lists=[first], watches=[watch]) as played:
        await until(lambda: played.values() == {"a": "changed", "b": "new"})
        assert played.reflector.last_error is None
        assert (played.reflector.lists, played.reflector.watches) == (1, 1)


async def test_a_bookmark_moves_the_place_from_which_the_next_watch_begins(tmp_path: Path) -> None:
    """Else a quiet collection's version would be compacted away."""
    watches = [events(bookmark(50)), events(("ADDED", thing("b", 60)), bookmark(70))]
    async with stage(tmp_path, lists=[listing(10)], watches=watches) as played:
        await until(lambda: len(played.watches) == 3)
        assert [x.query["resourceVersion"] for x in played.watches] == ["10", "50", "70"]
        assert len(played.lists) == 1


@pytest.mark.parametrize("watch", [refused(410, "Expired"), events(("ERROR", GONE))])
async def test_a_version_that_is_gone_makes_it_list_again(tmp_path: Path, watch: Any) -> None:
    """Told by the status or within the watch; what was deleted meanwhile is noticed."""
    lists = [listing(10, thing("a", 5), thing("b", 6, "x")), listing(90, thing("b", 6, "x"))]
    async with stage(tmp_path, lists=lists, watches=[watch]) as played:
        await until(lambda: len(played.watches) == 2)
        assert played.values() == {"b": "x"}
        assert played.watches[1].query["resourceVersion"] == "90"


async def test_a_version_that_is_always_gone_causes_no_hot_loop(tmp_path: Path) -> None:
    watches = [refused(410, "Expired") for _ in range(20)]
    async with stage(tmp_path, lists=[listing(10)], watches=watches, pauses=8) as played:
        await until(lambda: len(played.pauses) == 8)
        assert len(played.lists) == 8
        assert all(pause >= 15.0 for pause in played.pauses[6:])


async def test_a_server_that_ends_each_watch_at_once_is_asked_ever_less_often(
    tmp_path: Path,
) -> None:
    """No watch without a pause before it, and the pauses grow up to half a minute."""
    watches = [events(bookmark(11 + number)) for number in range(50)]
    async with stage(tmp_path, lists=[listing(10)], watches=watches, pauses=10) as played:
        await until(lambda: len(played.pauses) == 10)
        assert len(played.watches) == 10
        assert played.pauses[0] <= 1.2
        assert all(15.0 <= pause <= 45.0 for pause in played.pauses[7:])


async def test_a_watch_with_changes_is_followed_by_the_next_at_once(tmp_path: Path) -> None:
    """However short it was: the server ends those that it cannot feed as fast as things change."""
    watches = [events(("ADDED", thing(f"n{number}", 11 + number))) for number in range(9)]
    async with stage(tmp_path, lists=[listing(10)], watches=watches) as played:
        await until(lambda: len(played.watches) == 10)
        assert [x.query["resourceVersion"] for x in played.watches] == [
            str(version) for version in range(10, 20)
        ]
        assert len(played.values()) == 9
        assert played.pauses == []


async def test_a_watch_that_lasted_is_followed_by_the_next_at_once(tmp_path: Path) -> None:
    """The server ends every watch in the end: that is no failure."""

    async def long(answer: Answer) -> None:
        await answer.begin()
        await until(lambda: played.reflector.watches == len(played.watches))
        played.now += 400.0
        await answer.end()

    async with stage(tmp_path, lists=[listing(10)], watches=[long, long, long], pauses=1) as played:
        await until(lambda: len(played.watches) == 4)
        assert played.pauses == []


async def test_a_silent_watch_is_replaced_by_a_new_list(tmp_path: Path) -> None:
    """No bookmark for longer than bookmarks take: nobody knows what it should have said."""
    lists = [listing(10), listing(20, thing("a", 15, "missed"))]
    async with stage(tmp_path, lists=lists, watches=[], silence=0.05) as played:
        await until(lambda: len(played.watches) == 2)
        assert played.watches[1].query["resourceVersion"] == "20"
        assert played.values() == {"a": "missed"}


async def test_opening_a_watch_is_not_a_success(tmp_path: Path) -> None:
    """Pauses grow though each attempt took long to fail."""

    async def slow(answer: Answer) -> None:
        played.now += 60.0
        await answer.status(503, "ServiceUnavailable", "starting")

    async with stage(tmp_path, lists=[listing(10)], watches=[slow] * 8, pauses=8) as played:
        await until(lambda: len(played.pauses) == 8)
        assert played.pauses[-1] >= 15.0


@pytest.mark.parametrize(("asked", "least", "most"), [("70", 70.0, 70.0), ("9999", 300.0, 300.0)])
async def test_a_busy_server_is_left_alone_as_long_as_it_asks(
    tmp_path: Path, asked: str, least: float, most: float
) -> None:
    """The watch then goes on where it was; but nobody may send it away for hours."""
    watches = [refused(429, "TooManyRequests", Retry_After=asked)]
    async with stage(tmp_path, lists=[listing(10)], watches=watches) as played:
        await until(lambda: len(played.watches) == 2)
        assert least <= played.pauses[0] <= most
        assert len(played.lists) == 1


async def test_after_some_failures_in_a_row_the_version_is_not_believed(tmp_path: Path) -> None:
    """A restored etcd would answer 504 to it for ever."""
    watches = [refused(504, "Timeout") for _ in range(5)]
    async with stage(tmp_path, lists=[listing(10), listing(3)], watches=watches) as played:
        await until(lambda: len(played.watches) == 6)
        assert [x.query["resourceVersion"] for x in played.watches] == ["10"] * 5 + ["3"]


async def test_a_failed_list_is_retried_and_its_reason_reported(tmp_path: Path) -> None:
    """Until then nothing is synced, and `last_error` says why."""
    lists = [refused(403, "Forbidden"), refused(500), listing(10, thing("a", 5, "x"))]
    async with stage(tmp_path, lists=lists, watches=[], pauses=2) as played:
        await until(lambda: len(played.pauses) == 2)
        assert not played.cache.synced
        assert played.reflector.last_error is not None
        assert "failed to list things, with HTTP status 500" in str(played.reflector.last_error)

    lists = [refused(403, "Forbidden"), listing(10, thing("a", 5, "x"))]
    async with stage(tmp_path, lists=lists, watches=[]) as played:
        await played.cache.wait_synced()
        await until(lambda: played.reflector.last_error is None)
        assert played.values() == {"a": "x"}


async def test_a_watch_that_opens_and_breaks_again_and_again_is_failing(tmp_path: Path) -> None:
    """Since the first failure, though it hears of the server all the time."""

    async def breaks(answer: Answer) -> None:
        played.now += 30.0
        await answer.begin()

    async with stage(tmp_path, lists=[listing(10)], watches=[breaks] * 3, pauses=3) as played:
        await until(lambda: len(played.pauses) == 3)
        assert (played.reflector.failing, played.reflector.errors) == (60.0, 3)
        assert played.reflector.trouble().startswith("failing for 60 s: ")
        assert played.cache.age() == 0.0


@pytest.mark.parametrize("lasts", [0.0, 400.0], ids=["an event", "a watch that lasts"])
async def test_good_news_end_the_time_of_failing(tmp_path: Path, lasts: float) -> None:
    """What fails later begins anew."""

    async def good(answer: Answer) -> None:
        played.now += 100.0
        await answer.begin()
        if not lasts:
            await answer.event(*bookmark(11))
        await until(lambda: played.reflector.watches == 1)
        assert played.reflector.failing == 0.0
        played.now += lasts

    lists = [refused(500), listing(10)]
    async with stage(tmp_path, lists=lists, watches=[good], pauses=2) as played:
        await until(lambda: len(played.pauses) == 2)
        assert (played.reflector.failing, played.reflector.errors) == (0.0, 2)
        played.now += 7.0
        assert played.reflector.failing == 7.0


async def test_pauses_grow_no_longer_than_they_may(tmp_path: Path) -> None:
    """Half as much again, for they are spread."""
    lists = [refused(404, "NotFound") for _ in range(8)]
    async with stage(
        tmp_path, lists=lists, watches=[], delays=Delays(WATCH_DELAYS.first, 5.0), pauses=8
    ) as played:
        await until(lambda: len(played.pauses) == 8)
        assert max(played.pauses) <= 7.5


async def test_contact_is_noted_at_lists_events_and_bookmarks(tmp_path: Path) -> None:
    """So that a metric can tell how stale the cache may be."""

    async def watch(answer: Answer) -> None:
        await answer.begin()
        await until(lambda: played.cache.age() == 0.0)
        played.now = 1060.0
        await answer.event(*bookmark(11))
        await asyncio.sleep(1000)

    async with stage(tmp_path, lists=[listing(10)], watches=[watch]) as played:
        await until(lambda: played.now == 1060.0 and played.cache.age() == 0.0)
        played.now = 1090.0
        assert played.cache.age() == 30.0


async def test_an_object_that_cannot_be_followed_ends_no_watch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else whoever writes it stops the controller for all; it is counted, and the log has why."""

    def bug(change: Change[Any]) -> None:
        if change.key == "a":
            raise ZeroDivisionError

    watch = events(("ADDED", thing("a", 11)), ("ADDED", thing("b", 12)), ends=False)
    async with stage(tmp_path, lists=[listing(10)], watches=[watch]) as played:
        played.cache.subscribe(bug)
        await until(lambda: played.cache.get("b") is not None)
        assert played.cache.unreadable == 1
    assert "ZeroDivisionError" in caplog.text


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda x: x.replace(b"\n", b" "))),
    cuts=st.lists(st.integers(min_value=0, max_value=200)),
)
def test_lines_do_not_depend_on_where_the_stream_was_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = Lines()
    seen: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        seen += reader.feed(stream[start:end])
    reader.finish()
    assert seen == lines


def test_a_line_without_its_newline_is_none() -> None:
    """What the stream's end cut off is not given out, but an error."""
    reader = Lines()
    assert reader.feed(b'{"type": "ADDED"}\n{"type": "DELETED"}') == [b'{"type": "ADDED"}']
    with pytest.raises(ClusterError, match="within a line, after 19 bytes"):
        reader.finish()


def test_a_line_without_end_does_not_take_all_memory() -> None:
    """Beyond the longest line that is allowed, reading is given up."""
    reader = Lines(longest=10)
    reader.feed(b"12345\n1234567890")
    with pytest.raises(ClusterError, match="over 10 bytes"):
        reader.feed(b"1")


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
