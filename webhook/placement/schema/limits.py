"""How many items a document may have in one place: the API server's rules reckon with it."""

from collections.abc import Iterator
from typing import Any, Final

from webhook.strict import Problem

# Of each list of objects in a placement. Without a limit the API server reckons with as many items
# as a request of 3 MiB holds, and refuses rules that would cost too much then.
MAX_LISTED: Final = 64
# Fields that hold labels or annotations, by keys that anybody may choose; and lists of such keys.
MAPPINGS: Final = ("nodeSelector", "labels", "annotations", "matchLabels")
KEY_LISTS: Final = ("matchLabelKeys", "mismatchLabelKeys")


def long_lists(value: object, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """Every list of objects below `value` that has more than MAX_LISTED items; `at` is its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from long_lists(child, (*at, key))
    elif isinstance(value, list):
        if len(value) > MAX_LISTED and isinstance(value[0], dict):
            yield Problem(at, f"want at most {MAX_LISTED} items, not {len(value)}")
        for index, child in enumerate(value):
            yield from long_lists(child, (*at, index))


def crowded(value: object, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """As long_lists, and every mapping by free keys and list of keys with more than MAX_LISTED."""
    yield from long_lists(value, at)
    for path, child in _below(value, at):
        free = isinstance(child, dict) and path[-1] in MAPPINGS
        listed = isinstance(child, list) and path[-1] in KEY_LISTS
        if (free or listed) and len(child) > MAX_LISTED:
            what = "keys" if free else "items"
            yield Problem(path, f"want at most {MAX_LISTED} {what}, not {len(child)}")


def _below(value: object, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each field of each mapping below `value`, with its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*at, key), child
            yield from _below(child, (*at, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _below(child, (*at, index))
