"""Which objects are meant: TYPE NAME, or TYPE/NAME, as kubectl takes them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import click

_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# Nothing else may become part of a path or a query.
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_PART}(\.{_PART})*")
_TYPE: Final = re.compile(r"[A-Za-z][-A-Za-z0-9.]*")


class Named(NamedTuple):
    """An object by the word for its kind, as it was said, and its name."""

    kind: str
    name: str


def named(words: tuple[str, ...]) -> list[Named]:
    """The objects that the words of a command line name. Raises UsageError."""
    if all("/" in word for word in words):
        found = [Named(*word.split("/", 1)) for word in words]
    elif "/" in "".join(words):
        raise click.UsageError("give TYPE NAME..., or TYPE/NAME for each; not both")
    elif len(words) == 1:
        raise click.UsageError(
            f"{words[0]}: want a kind and a name, as in `pod train-0`, `job/train` or `job train`"
        )
    else:
        found = [Named(words[0], name) for name in words[1:]]
    for each in found:
        if not _TYPE.fullmatch(each.kind) or not _NAME.fullmatch(each.name):
            raise click.UsageError(
                f"{each.kind}/{each.name}: want a kind, such as pod, job or jobset, and a name of "
                "lower case letters, digits, '-', '.'"
            )
    return list(dict.fromkeys(found))
