"""Exit codes are promises, and an error has one."""

from __future__ import annotations

import pytest

from webhook.cli.exit_codes import DONE, FAILED, INTERRUPTED, TERMINATED, UNKNOWN, errors_exit
from webhook.errors import ClusterError, FairleadError, UnreadableInput


def test_the_codes_are_those_that_are_promised() -> None:
    """In every command's help; 130 and 143 are those of shells."""
    assert (DONE, FAILED, UNKNOWN, INTERRUPTED, TERMINATED) == (0, 1, 2, 130, 143)


@pytest.mark.parametrize("code", [FAILED, UNKNOWN])
def test_an_error_ends_the_command_with_the_code_and_its_text(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, without what would steer a terminal."""
    with pytest.raises(SystemExit) as ended, errors_exit(code):
        raise FairleadError("no \x1b[2J cluster")
    assert ended.value.code == code
    assert capsys.readouterr() == ("", "error: no \\x1b[2J cluster\n")


def test_only_the_errors_that_are_meant_end_it() -> None:
    """Another is left to whoever calls."""
    with pytest.raises(UnreadableInput), errors_exit(UNKNOWN, ClusterError):
        raise UnreadableInput(["a: not there"])
    with pytest.raises(SystemExit), errors_exit(UNKNOWN, ClusterError):
        raise ClusterError("no answer")
