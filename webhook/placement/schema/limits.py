"""How long the lists of a document may be: the API server's rules reckon with it."""

from collections.abc import Iterator
from typing import Final

from webhook.placement.schema.base import Problem

# Of each list of objects in a placement. Without a limit the API server reckons with as many items
# as a request of 3 MiB holds, and refuses rules that would cost too much then.
MAX_LISTED: Final = 64


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
