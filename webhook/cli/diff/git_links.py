"""What the links of a committed folder lead to, told by the folder's own entries."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Links that lead to links, one after the other; Linux follows as many.
_MOST: Final = 40


def end_of(link: str, links: Mapping[str, str]) -> str:
    """The name that a link leads to in the end; `links` are all of the folder, with their texts.

    Names go from the folder. One that begins with `..` or a slash is outside of it, and one that
    is still in `links` leads in a circle.

    >>> end_of("a.yaml", {"a.yaml": "deep/b.yaml", "deep/b.yaml": "../c.yaml"})
    'c.yaml'
    """
    name = link
    for _ in range(_MOST):
        if name not in links:
            break
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), links[name]))
    return name


def is_hidden(name: str) -> bool:
    """Whether a folder that is read passes it over: something on its way starts with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def is_folder_in(name: str, entries: Collection[str]) -> bool:
    """Whether it is a folder that is read, for its own sake, together with all of it."""
    return name == "." or (
        not is_hidden(name) and any(entry.startswith(f"{name}/") for entry in entries)
    )
