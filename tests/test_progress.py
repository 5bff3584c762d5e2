"""What a person sees of long work."""

from __future__ import annotations

import io

import pytest

from webhook.progress import Lines, duration


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def work(stream: io.StringIO, *, fails: bool = False) -> str:
    """What a step writes to the stream."""
    try:
        with Lines(stream).step("building etcd", about=55):
            if fails:
                raise RuntimeError
    except RuntimeError:
        pass
    return stream.getvalue()


def test_a_pipe_gets_plain_lines() -> None:
    """No control characters, and each line whole: what starts, how long it may take, its end."""
    first, second = work(io.StringIO()).splitlines()
    assert first == "building etcd (about 55 s) ..."
    assert second.startswith("building etcd: done in ")


def test_a_terminal_gets_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line ends only when the step does."""
    monkeypatch.setenv("TERM", "xterm")
    text = work(Terminal())
    assert text.count("\n") == 1
    assert text.startswith("\r\x1b[Kbuilding etcd (about 55 s) ...\r\x1b[K")


def test_a_dumb_terminal_gets_lines_as_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would print the control characters."""
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in work(Terminal())


def test_quiet_work_writes_its_facts_alone() -> None:
    """A note may be a warning."""
    stream = io.StringIO()
    lines = Lines(stream, steps=False)
    with lines.step("building etcd"):
        lines.note("the image is in no registry")
    assert stream.getvalue() == "the image is in no registry\n"


def test_a_step_that_fails_says_so() -> None:
    """A failure is not reported as done."""
    assert "building etcd: failed in " in work(io.StringIO(), fails=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"),
        (9.96, "10.0 s"),
        (52, "52 s"),
        (59.7, "1 min 00 s"),
        (270, "4 min 30 s"),
    ],
)
def test_durations_are_formatted_for_people(seconds: float, text: str) -> None:
    """Seconds up to a minute, then minutes and seconds."""
    assert duration(seconds) == text
