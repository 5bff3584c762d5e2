"""Read the stamp of a pod, whoever wrote it: a webhook, a newer one, or the pod's author."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from webhook import names
from webhook.dns_names import is_subdomain
from webhook.errors import UnreadableText
from webhook.foreign_text import annotation, parse_count, parse_moment, parse_object
from webhook.placement.fallback import MAX_RETURN
from webhook.shortening import harmless
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Classes of a stamp with a fallback. Each that a pod loses is an event in its Run's status.
_MOST_CLASSES: Final = 32


class Stamp(NamedTuple):
    """The stamp: the set's hash, and the fields that each policy is credited with.

    left_alone: why the pod was left alone, or empty
    exceptions: the policies that each took away
    removed:    the tolerations that each policy took from the pod, as texts
    left_out:   the labels that each policy did not set, as the owner's selector was not read
    whole:      the unchanged stamp, with what this version does not know
    """

    set_hash: str
    policies: Mapping[str, Sequence[str]]
    left_alone: str
    exceptions: Mapping[str, Sequence[str]]
    removed: Mapping[str, Sequence[str]]
    left_out: Mapping[str, Sequence[str]]
    whole: Mapping[str, Any]

    @property
    def all_policies(self) -> list[str]:
        return [*self.policies, *(policy for gone in self.exceptions.values() for policy in gone)]


def read_stamp(metadata: object) -> Stamp | None:
    """Return the stamp in a pod's metadata; None if it has none that can be read.

    Any user who may write pods may have written it, so control characters are escaped.
    """
    text = annotation(metadata, names.PLACEMENT)
    try:
        document = parse_object(text) if text else None
    except UnreadableText:
        return None
    if document is None:
        return None
    return Stamp(
        _text(document.get("set")),
        _lists(document.get("policies")),
        _text(document.get("leftAlone")),
        _lists(document.get("exceptions")),
        _lists(document.get("removed")),
        _lists(document.get("leftOut")),
        document,
    )


def read_waits(metadata: object) -> tuple[tuple[str, int | None], ...]:
    """Return the classes that a pod requires until it falls back, by its stamp.

    Each with the seconds that it waits for a node before that; None if it does not.
    """
    return tuple((name, seconds) for name, seconds in _fallback(metadata) if _is_wait(seconds))


def read_given_up(metadata: object) -> tuple[tuple[str, str], ...]:
    """Return the classes that a pod does not require, by its stamp, each with until when."""
    given_up_classes = []
    for name, until in _fallback(metadata):
        with suppress(UnreadableText):
            given_up_classes.append((name, to_second(parse_moment(until))))
    return tuple(given_up_classes)


def read_turns(metadata: object) -> tuple[int, ...]:
    """Return the replica indexes whose replicas may be placed otherwise than those before, by the
    stamp of a dry run; empty without them."""
    stamp = read_stamp(metadata)
    turns = stamp.whole.get("turns") if stamp else None
    return tuple(turn for turn in turns if type(turn) is int) if isinstance(turns, list) else ()


def _fallback(metadata: object) -> Iterator[tuple[str, object]]:
    # Most stamps have none, and the controller reads thousands of pods.
    if '"fallback"' not in annotation(metadata, names.PLACEMENT):
        return
    stamp = read_stamp(metadata)
    classes = stamp.whole.get("fallback") if stamp else None
    for name, value in sorted(classes.items())[:_MOST_CLASSES] if isinstance(classes, dict) else ():
        if is_subdomain(name):
            yield sys.intern(name), value


def _is_wait(seconds: object) -> TypeGuard[int | None]:
    if seconds is None:
        return True
    try:
        parse_count(seconds, 0, round(MAX_RETURN.total_seconds()))
    except UnreadableText:
        return False  # the time until which a class is not required, or an author's text
    return True


def _text(value: object) -> str:
    return harmless(value) if isinstance(value, str) else ""


def _lists(value: object) -> Mapping[str, Sequence[str]]:
    return {
        harmless(key): [harmless(item) for item in items if isinstance(item, str)]
        for key, items in (value.items() if isinstance(value, dict) else ())
        if isinstance(items, list)
    }
