"""Exit codes, and errors that end a command."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

from webhook.cli.output import print_error
from webhook.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Iterator

DONE: Final = 0
# The command found a problem, or did not do what was asked.
FAILED: Final = 1
# Wrong usage, which click reports itself; or the result is unknown, such as without the cluster.
UNKNOWN: Final = 2
# As shells report a process that a signal ended: 128 plus the number of SIGINT or SIGTERM.
INTERRUPTED: Final = 130
TERMINATED: Final = 143


def fail(error: FairleadError, code: int) -> NoReturn:
    """Print the error, and exit with this code."""
    print_error(error)
    sys.exit(code)


@contextmanager
def errors_exit(code: int, kind: type[FairleadError] = FairleadError) -> Iterator[None]:
    """Print an error of this kind if it is raised, and exit with this code."""
    try:
        yield
    except kind as error:
        fail(error, code)
