"""Which logs there are, which replicas have none, and lines with the name of their replica."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.run.scripted_cluster import (
    delegated_run,
    engine_pod_object,
    pod_object,
    run_object,
    served_pod,
)
from tests.wording import Wording, mentions
from webhook.cli.run.log_reading import (
    LogLines,
    LogSelection,
    Prefixes,
    check_selection,
    sources_of,
    without_pods,
)
from webhook.errors import FairleadError
from webhook.run.backends.engine_pods import pod_reader
from webhook.run.model import RunStatus

READER = pod_reader(run_object(), ("master", "worker"))
STATUS = RunStatus.model_validate(
    {"replicas": {"master": {"desired": 1}, "worker": {"desired": 12, "succeededIndexes": "0-3"}}}
)


def names(*pods: dict[str, Any], wanted: LogSelection | None = None) -> list[str]:
    return [source.name for source in sources_of(READER, pods, wanted or LogSelection())]


def test_logs_come_by_role_and_index() -> None:
    """Not by the letters of their names."""
    pods = [pod_object(name) for name in ("worker-10", "worker-9", "master-0")]
    assert names(*pods) == ["master-0", "worker-9", "worker-10"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LogSelection("worker"), ["worker-0", "worker-1"]),
        (LogSelection("worker", 1), ["worker-1"]),
        (LogSelection(index=0), ["master-0", "worker-0"]),
    ],
)
def test_role_and_index_choose(wanted: LogSelection, found: list[str]) -> None:
    """Either, or both."""
    pods = [pod_object(name) for name in ("master-0", "worker-0", "worker-1")]
    assert names(*pods, wanted=wanted) == found


def test_logs_of_a_delegated_run_have_the_roles_of_the_run() -> None:
    """The operator calls a server master, and its main container has the operator's name."""
    reader = pod_reader(delegated_run(), ("server", "worker"))
    pods = [engine_pod_object(name) for name in ("worker-1", "master-0")]
    foreign = engine_pod_object("worker-0", run="other")
    forged = engine_pod_object("worker-0")
    forged["metadata"]["ownerReferences"][0]["name"] = "other"
    found = sources_of(reader, [*pods, foreign, forged], LogSelection())
    assert [(one.name, one.pod, one.container) for one in found] == [
        ("server-0", "mnist-master-0", "paddle"),
        ("worker-1", "mnist-worker-1", "paddle"),
    ]


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


def test_replicas_without_pods_are_reported_by_role(wording: Wording) -> None:
    """Those that have finished apart from those that should be there."""
    there = sources_of(READER, [pod_object("worker-3"), pod_object("worker-5")], LogSelection())
    (finished, why), (missing, why_missing) = without_pods(STATUS, there, LogSelection("worker"))
    assert (finished, missing) == ("worker 0-2", "worker 4,6-11")
    mentions(why, "succeeded", "gone")
    mentions(why_missing, "no pod")
    assert "succeeded" not in why_missing
    wording(f"{why}\n{why_missing}")
    assert next(without_pods(STATUS, there, LogSelection(index=0)))[0] == "master 0"


def test_the_pods_of_a_deployment_are_not_replicas_of_a_role() -> None:
    """They are there unless a role or an index is asked for."""
    pod = served_pod("abc")
    assert names(pod) == ["abc"]
    assert names(pod, wanted=LogSelection(index=0)) == []


@pytest.mark.parametrize(
    ("wanted", "facts"),
    [
        (LogSelection("ps"), ["role ps", "master, worker"]),
        (LogSelection("worker", 12), ["index 12", "worker", "11"]),
        (LogSelection(index=12), ["index 12", "any role", "11"]),
    ],
    ids=["role", "index of a role", "index"],
)
def test_what_the_run_does_not_have_is_an_error(
    wanted: LogSelection, facts: list[str], wording: Wording
) -> None:
    """With what it has."""
    with pytest.raises(FairleadError) as caught:
        check_selection(run_object(), STATUS, wanted)
    mentions(str(caught.value), "run mnist has no ", *facts)
    wording(str(caught.value))


def test_before_there_is_a_status_the_spec_tells_the_roles() -> None:
    """A run without replicas is one master."""
    check_selection(run_object(), RunStatus(), LogSelection("worker", 1))
    with pytest.raises(FairleadError, match="the last one is 1"):
        check_selection(run_object(), RunStatus(), LogSelection("worker", 2))
    alone = run_object()
    del alone["spec"]["replicas"]
    check_selection(alone, RunStatus(), LogSelection("master", 0))


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
