"""Every log line is one JSON object, and libraries do not get to log bodies."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from webhook.server.logs import (
    BURST,
    LEVELS,
    LONGEST_LINE,
    LONGEST_TEXT,
    PER_SECOND,
    JsonFormatter,
    PacedHandler,
    configure,
)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Give pytest its own handlers and levels back."""
    root, ours = logging.getLogger(), logging.getLogger("webhook")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    root.handlers = []
    yield
    logging.captureWarnings(capture=False)
    root.handlers = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is Python's, not JSON's")

    return [json.loads(line, parse_constant=refuse) for line in stream.getvalue().splitlines()]


def _circular() -> list[object]:
    circular: list[object] = []
    circular.append(circular)
    return circular


@pytest.fixture
def stream() -> io.StringIO:
    """Where lines are written from info on."""
    found = io.StringIO()
    configure("info", found)
    return found


def test_a_line_holds_time_level_logger_message_and_what_was_added(stream: io.StringIO) -> None:
    """The time is RFC 3339 in UTC, and extra fields stand beside the message."""
    logging.getLogger("webhook.test").warning("seen %d", 3, extra={"uid": "a-b", "count": 2})
    (line,) = _lines(stream)
    time = line.pop("time")
    assert time[10] == "T"
    assert time.endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "webhook.test",
        "message": "seen 3",
        "uid": "a-b",
        "count": 2,
    }


@pytest.mark.parametrize(
    "value",
    ["two\nlines", "\ud800", "ü", object(), b"bytes", {(1, 2): 3}, float("1e400"), _circular()],
    ids=["newline", "surrogate", "umlaut", "object", "bytes", "keys", "infinity", "circular"],
)
def test_any_value_makes_one_ascii_line(stream: io.StringIO, value: object) -> None:
    """Whatever a field holds, the line stays one line, ASCII, and JSON."""
    logging.getLogger("webhook.test").info("message", extra={"field": value})
    assert len(_lines(stream)) == 1
    assert stream.getvalue().isascii()


def test_an_exception_is_a_field_of_its_line(stream: io.StringIO) -> None:
    """The traceback is within the object, so that it cannot be torn apart."""
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError:
        logging.getLogger("webhook.test").exception("failed")
    (line,) = _lines(stream)
    assert line["exception"].endswith("ZeroDivisionError: by nothing")


def test_an_extra_field_never_replaces_the_messages_own(stream: io.StringIO) -> None:
    """A field named like one of the line's own is dropped: level and logger are what they are."""
    logging.getLogger("webhook.test").info("message", extra={"level": "x", "logger": "y"})
    (line,) = _lines(stream)
    assert (line["level"], line["logger"]) == ("info", "webhook.test")


@pytest.mark.parametrize("level", LEVELS)
def test_our_loggers_keep_the_level_and_libraries_stay_above_debug(level: str) -> None:
    """At debug our own lines are there; the Kubernetes client, which logs bodies, stays silent."""
    stream = io.StringIO()
    configure(level, stream)
    for name in ("webhook.test", "kubernetes.client.rest"):
        for each in LEVELS:
            logging.getLogger(name).log(logging.getLevelNamesMapping()[each.upper()], "message")
    logged = [(line["logger"], line["level"]) for line in _lines(stream)]
    ours = LEVELS[LEVELS.index(level) :]
    assert [each for name, each in logged if name == "webhook.test"] == list(ours)
    theirs = [each for name, each in logged if name != "webhook.test"]
    assert theirs == [each for each in ours if each != "debug"]


def test_uvicorn_logs_the_same_way(stream: io.StringIO) -> None:
    """uvicorn's lines are JSON too, without its second copy for terminals."""
    logging.getLogger("uvicorn.error").info("up", extra={"color_message": "\x1b[1mup"})
    (line,) = _lines(stream)
    assert line["logger"] == "uvicorn.error"
    assert "color_message" not in line


def test_python_warnings_are_lines_too(stream: io.StringIO) -> None:
    """What Python would print to stderr by itself comes as JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old", UserWarning, stacklevel=1)
    (line,) = _lines(stream)
    assert (line["logger"], line["level"]) == ("py.warnings", "warning")


@pytest.mark.parametrize(
    "value",
    ["\x7f" * 6_000_000, ["\x7f" * 1000] * 1000, {"a": {"b": "\x7f" * 1_000_000}}],
    ids=["text", "list", "nested"],
)
def test_a_line_has_a_limit_whatever_is_logged(stream: io.StringIO, value: object) -> None:
    """A stranger's words must not fill the node's disk."""
    logging.getLogger("webhook.test").warning("seen", extra={"uid": value, "reason": "short"})
    assert len(stream.getvalue()) <= LONGEST_LINE
    (line,) = _lines(stream)
    assert (line["message"], line["reason"]) == ("seen", "short")


def test_a_long_traceback_keeps_its_end(stream: io.StringIO) -> None:
    """There stands what went wrong."""
    try:
        raise ValueError("x" * 1_000_000 + " at last")
    except ValueError:
        logging.getLogger("webhook.test").exception("broken")
    (line,) = _lines(stream)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith(" at last")
    assert len(stream.getvalue()) <= LONGEST_LINE


def test_lines_have_a_pace_and_what_is_left_out_is_counted() -> None:
    """However many requests a stranger sends that are logged."""
    now = 0.0
    stream = io.StringIO()
    handler = PacedHandler(stream, clock=lambda: now)
    handler.setFormatter(JsonFormatter())
    record = logging.makeLogRecord({"msg": "x" * LONGEST_TEXT, "levelname": "WARNING"})
    for _ in range(10_000):
        handler.emit(record)
    assert BURST <= len(stream.getvalue()) <= BURST + LONGEST_LINE
    written = len(_lines(stream))
    now = 1.0
    for _ in range(10_000):
        handler.emit(logging.makeLogRecord(record.__dict__))
    lines = _lines(stream)
    assert lines[written]["lines_left_out"] == 10_000 - written
    assert "lines_left_out" not in lines[written + 1]
    assert len(stream.getvalue()) <= BURST + PER_SECOND + 2 * LONGEST_LINE


def test_at_debug_nothing_is_left_out() -> None:
    """Who asks for it wants to see it."""
    stream = io.StringIO()
    configure("debug", stream)
    logger = logging.getLogger("webhook.test")
    for _ in range(1200):
        logger.warning("x" * LONGEST_TEXT)
    assert len(_lines(stream)) == 1200
