"""Exit codes are promises: one scheme of all commands, and an error has one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cli.every_command import ALL, ASKING, Words
from tests.wording import mentions
from webhook.cli.exit_codes import FAILED, MEANINGS, TIME_OVER, UNKNOWN, code_of, errors_exit
from webhook.errors import ClusterError, FairleadError, InvalidName, NoSuch, UnreadableInput
from webhook.installation.apply import NotInTime
from webhook.questions.live.focus import NoSuchPolicy
from webhook.questions.live.live_objects import NoSuchObject


def test_the_codes_are_those_that_are_promised() -> None:
    """130 and 143 are those of shells."""
    assert [*MEANINGS] == [0, 1, 2, 3, 130, 143]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_help_of_a_command_has_codes_of_the_scheme(words: Words) -> None:
    """It says what its own are; of a command that asks a cluster, what it means without answer."""
    _, _, listed = (ALL[words].help or "").partition("Exit codes")
    codes = re.findall(r"^ +(\w+)  ", listed.partition("\n\n")[0], re.MULTILINE)
    assert set(codes) <= set(map(str, MEANINGS)), codes
    if words in ASKING:
        assert "2" in codes
        assert "the cluster" in " ".join(listed.partition("  2  ")[2].split()), listed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FairleadError("a"), FAILED),
        (UnreadableInput(["a"]), FAILED),
        (ClusterError("a"), UNKNOWN),
        (InvalidName("a"), UNKNOWN),
        (NoSuch("a"), UNKNOWN),
        (NoSuchObject("a"), UNKNOWN),
        (NoSuchPolicy("a", "b", ["c"]), UNKNOWN),
        (NotInTime("a"), TIME_OVER),
    ],
)
def test_an_error_has_a_code(error: FairleadError, code: int) -> None:
    """What is not known is not a no."""
    assert code_of(error) == code


@pytest.mark.parametrize("code", [FAILED, UNKNOWN])
def test_an_error_ends_the_command_with_the_code_and_its_text(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, without what would steer a terminal."""
    with pytest.raises(SystemExit) as ended, errors_exit(code):
        raise FairleadError("no \x1b[2J cluster")
    assert ended.value.code == code
    assert capsys.readouterr() == ("", "error: no \\x1b[2J cluster\n")


def ended(shell: str, **environ: str) -> tuple[int, str]:
    """The exit code and stderr of a command line in a shell; `$FAIRLEAD` is the program."""
    program = f"{sys.executable} -m webhook"
    done = subprocess.run(
        ["sh", "-c", shell.replace("$FAIRLEAD", program)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["version", "policy sources", "--help"])
def test_a_full_disk_is_one_line(words: str) -> None:
    """And nothing more, when Python empties its buffers at the end."""
    code, stderr = ended(f"$FAIRLEAD {words} > /dev/full")
    assert code == UNKNOWN
    assert stderr == "error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("words", ["check -", "preview -f - --policies /dev/null"])
def test_a_closed_standard_input_is_one_sentence(words: str) -> None:
    """With what to do."""
    code, stderr = ended(f"$FAIRLEAD {words} <&-")
    assert code == UNKNOWN
    assert "Traceback" not in stderr
    mentions(stderr, "standard input is closed")


def test_an_encoding_without_a_sign_is_one_line() -> None:
    """The sign and the encoding are named."""
    code, stderr = ended("$FAIRLEAD policy sources -o wide", PYTHONIOENCODING="latin-1")
    assert code == UNKNOWN
    (line,) = stderr.splitlines()
    mentions(line, "2192", "latin-1", "PYTHONIOENCODING")
