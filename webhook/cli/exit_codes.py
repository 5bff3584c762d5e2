"""Exit codes: one scheme of all commands, and errors that end a command."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from webhook.cli.output import print_error, say
from webhook.errors import ClusterError, FairleadError, NoSuch, TimeOver, WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

DONE: Final = 0
FAILED: Final = 1
UNKNOWN: Final = 2
TIME_OVER: Final = 3
# As shells report a process that a signal ended: 128 plus the number of SIGINT or SIGTERM.
INTERRUPTED: Final = 130
TERMINATED: Final = 143

# docs/reference/commands.md has this table, and the help of each command says what its own are.
MEANINGS: Final[dict[int, str]] = {
    DONE: "The answer is yes, or what was asked for is done.",
    FAILED: "The answer is no: a problem was found, a file has an error, a Run failed, or what was "
    "asked for is not done.",
    UNKNOWN: "Wrong usage, or the answer is not known: there is no such object, the cluster did "
    "not answer or rejected the request, or the output could not be written.",
    TIME_OVER: "The time of `--timeout` is over.",
    INTERRUPTED: "Ended by Ctrl-C.",
    TERMINATED: "Ended by SIGTERM.",
}
_BY_ERROR: Final[tuple[tuple[type[FairleadError], int], ...]] = (
    (TimeOver, TIME_OVER),
    (ClusterError, UNKNOWN),
    (NoSuch, UNKNOWN),
    (WrongUsage, UNKNOWN),
)
# A disk that is full, or a file that takes no more.
_NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def gate(*, failed: bool, unknown: bool) -> int:
    """Return the exit code of a command with --fail-on: no, else not known, else yes.

    `unknown`: whether a fact is not known that could change the answer.
    """
    return FAILED if failed else UNKNOWN if unknown else DONE


def code_of(error: FairleadError) -> int:
    """Return the exit code of a command that this error ends."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)


def fail(error: FairleadError, code: int) -> NoReturn:
    """Print the error, and exit with this code."""
    print_error(error)
    sys.exit(code)


@contextmanager
def errors_exit(code: int | None = None) -> Iterator[None]:
    """Print an error if it is raised, and exit with this code, by default with the error's own."""
    try:
        yield
    except FairleadError as error:
        fail(error, code_of(error) if code is None else code)


@contextmanager
def usage_exits() -> Iterator[None]:
    """Print wrong usage as every other error, then where its help is, and exit.

    click would print `Error:`, below the usage.
    """
    try:
        yield
    except WrongUsage as error:
        say("error", str(error))
        sys.exit(UNKNOWN)
    except click.ClickException as error:
        say("error", error.format_message())
        if context := getattr(error, "ctx", None):
            click.echo(f"`{context.command_path} --help` shows the usage.", err=True)
        sys.exit(error.exit_code)


class _ClosedInput:
    """Standard input that the shell has closed (`<&-`), for which Python has None."""

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise click.UsageError("standard input is closed: give a file in place of -")


@contextmanager
def streams_exit() -> Iterator[None]:
    """Exit with UNKNOWN and one line if standard output or input cannot be used."""
    if sys.stdin is None:
        sys.stdin = _ClosedInput()
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        _end(f"cannot write the output: {os.strerror(error.errno)}")
    except UnicodeEncodeError as error:
        sign = ascii(error.object[error.start])
        _end(
            f"cannot write {sign} in the encoding {error.encoding} of the output: set "
            "PYTHONIOENCODING=utf-8"
        )


def _end(text: str) -> NoReturn:
    """Print the error; what is left in the buffer is dropped, which Python would write at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    say("error", text)
    sys.exit(UNKNOWN)
