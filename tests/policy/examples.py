"""Documents that use every field, and what can be changed in them: to compare readers."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

EVERYTHING = (Path(__file__).parent / "everything.yaml").read_text()

# The value that takes its place away.
GONE = object()


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below a node of mappings and lists."""
    items: dict[Any, Any] = {}
    if isinstance(node, dict | list):
        items = node if isinstance(node, dict) else dict(enumerate(node))
    for key, value in items.items():
        yield (*path, key)
        yield from places(value, (*path, key))


def with_changes(
    wholes: st.SearchStrategy[Any], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Objects with one or two values in the spec, or the name, changed or taken away."""

    @st.composite
    def objects(draw: st.DrawFn) -> Any:
        whole = draw(wholes)
        for _ in range(draw(st.integers(1, 2))):
            paths = [path for path in places(whole) if path[0] == "spec" or path[1:] == ("name",)]
            if paths:
                whole = changed(whole, draw(st.sampled_from(paths)), draw(values))
        return whole

    return objects()


def changed(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a node with another value at the path, or with none if it is GONE."""
    whole = copy.deepcopy(node)
    parent = whole
    for step in path[:-1]:
        parent = parent[step]
    if value is GONE:
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(value)
    return whole
