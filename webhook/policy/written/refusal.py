"""The errors that a write brings, as lines for whoever wrote it: all of them, with the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.policy.checks import UNKNOWN_CLASS
from webhook.policy.findings import first_few
from webhook.policy.written.write import Write, called

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.policy.findings import Finding

_MOST: Final = 20
_NAMED: Final = 5


def lines(write: Write, errors: Sequence[Finding]) -> tuple[str, ...]:
    """A line for each error; of those who name a class that goes, one for all."""
    resource, _, name = write.place.partition("/")
    gone = write.new is None and resource == names.CAPACITY_CLASSES
    orphans = [each for each in errors if gone and _misses(each, name)]
    result = [_still_named(name, orphans)] if orphans else []
    result += [_line(write, each) for each in errors if each not in orphans]
    more = len(result) - _MOST
    return (*result[:_MOST], f"and {more} more errors") if more > 0 else tuple(result)


def _misses(error: Finding, name: str) -> bool:
    return error.about == name and error.message.startswith(UNKNOWN_CLASS)


def _still_named(name: str, orphans: Sequence[Finding]) -> str:
    who = list(dict.fromkeys(called(each.file) for each in orphans))
    first = orphans[0]
    return (
        f"class {name!r} is named by {first_few(who, _NAMED)} ({first.file}: {first.path}): "
        f"change or delete {'that' if len(who) == 1 else 'those'} first"
    )


def _line(write: Write, error: Finding) -> str:
    where = "" if error.file == write.place else f"{called(error.file)}: "
    return f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}"
