"""Which logs there are, which replicas have none, and lines with the name of their replica."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.run.scripted_cluster import (
    pod_object,
    run_object,
)
from webhook.cli.run.logs import Prefixes
from webhook.run.backends.engine_pods import pod_reader
from webhook.run_client.log_reading import LogLines
from webhook.run_client.log_sources import LogSelection, sources_of

READER = pod_reader(run_object(), ("master", "worker"))


def test_the_container_is_the_main_one_unless_another_is_asked_for() -> None:
    """As the pod's annotation says, else its first."""
    pod, plain = pod_object("worker-0"), pod_object("worker-1")
    del plain["metadata"]["annotations"]
    main, first = sources_of(READER, [pod, plain], LogSelection())
    assert (main.container, first.container) == ("main", "side")
    (asked,) = sources_of(READER, [pod], LogSelection(container="side"))
    assert asked.container == "side"


@pytest.mark.parametrize(
    ("state", "started"),
    [
        ({"running": {}}, True),
        ({"terminated": {"exitCode": 0}}, True),
        ({"waiting": {"reason": "ErrImagePull"}}, False),
        ({}, False),
    ],
)
def test_a_container_that_waits_has_no_log_yet(state: dict[str, Any], started: bool) -> None:
    """What it waits for is told."""
    pod = pod_object("worker-0", containerStatuses=[{"name": "main", "state": state}])
    (source,) = sources_of(READER, [pod], LogSelection())
    assert source.started == started
    assert source.why == ("ErrImagePull" if "waiting" in state else "")


def test_a_restarted_container_has_a_log() -> None:
    """While it waits for its next start, too."""
    status = {"name": "main", "restartCount": 1, "state": {"waiting": {"reason": "Crash"}}}
    (source,) = sources_of(
        READER, [pod_object("worker-0", containerStatuses=[status])], LogSelection()
    )
    assert source.started


def test_of_a_pod_that_says_nothing_of_its_containers_the_phase_counts() -> None:
    """A pod that is pending has begun nothing."""
    running = pod_object("worker-0", containerStatuses=[])
    pending = pod_object("worker-1", phase="Pending", containerStatuses=[])
    assert [one.started for one in sources_of(READER, [running, pending], LogSelection())] == [
        True,
        False,
    ]


@given(st.text(st.characters(exclude_characters="\r", codec="utf-8")), st.data())
def test_lines_are_the_same_however_the_bytes_are_cut(text: str, data: st.DataObject) -> None:
    """Within a character too; the last line needs no newline."""
    whole = text.encode()
    log, lines, start = LogLines(), [], 0
    while start < len(whole):
        end = data.draw(st.integers(start + 1, len(whole)))
        lines += log.feed(whole[start:end])
        start = end
    lines += log.finish()
    assert "\n".join(lines) == text.removesuffix("\n")


def test_of_a_progress_bar_the_last_state_is_shown() -> None:
    """It would write over the prefix, and over the other replicas' lines."""
    log = LogLines()
    assert log.feed(b"10%\r50%\r100%\nplain\r\n") == ["100%", "plain"]


def test_invalid_utf8_is_replaced() -> None:
    """And nothing is lost around it."""
    log = LogLines()
    assert log.feed(b"a\xff\xfeb\n\xc3") == ["a\ufffd\ufffdb"]
    assert log.finish() == ["\ufffd"]


def test_a_line_without_end_is_shown_in_pieces() -> None:
    """Else it would take all memory."""
    log = LogLines()
    pieces = [line for _ in range(40) for line in log.feed(b"x" * 100_000)]
    assert pieces
    assert "".join([*pieces, *log.finish()]) == "x" * 4_000_000


def test_prefixes_are_of_one_width() -> None:
    """So that the lines can be read as columns; an empty line ends in no blank."""
    prefixes = Prefixes(["ps-0", "worker-10"], coloured=False)
    assert prefixes.prefixed("ps-0", ["a", ""]) == "ps-0      | a\nps-0      |\n"
    assert prefixes.prefixed("worker-10", ["b"]) == "worker-10 | b\n"


def test_each_replica_has_its_colour_and_keeps_it() -> None:
    """Only the prefix is coloured."""
    prefixes = Prefixes(["a", "b"], coloured=True)
    first, second = prefixes.prefixed("a", ["x"]), prefixes.prefixed("b", ["x"])
    assert prefixes.prefixed("a", ["x"]) == first
    assert first[:5] != second[:5]
    assert click.unstyle(first) == "a | x\n"
    assert first.endswith("\x1b[0m x\n")
