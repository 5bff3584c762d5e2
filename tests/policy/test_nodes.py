"""A tree of nodes gives back the values, and the place of each."""

import pytest

from webhook.policy.findings import Path
from webhook.policy.nodes import Node, Place, find, locate, value, walk
from webhook.policy.yaml_text import trees

TEXT = """\
a: 1
b:
  c: [x,
    {d: ""}]
  e: {f: }
"""


def root(text: str = TEXT) -> Node:
    """The only document of a text."""
    [tree] = trees(text)
    return tree.root


def test_a_tree_gives_its_values() -> None:
    """Mappings, lists and scalars as plain Python."""
    assert value(root()) == {"a": 1, "b": {"c": ["x", {"d": ""}], "e": {"f": None}}}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (1, 1)),
        (("a",), (1, 4)),
        (("b",), (2, 1)),
        (("b", "c"), (3, 3)),
        (("b", "c", 0), (3, 7)),
        (("b", "c", 1), (4, 5)),
        (("b", "c", 1, "d"), (4, 6)),
        (("b", "e", "f"), (5, 7)),
        (("b", "c", 7, "x"), (3, 3)),
        (("b", "missing", "x"), (2, 1)),
        (("a", "below a scalar"), (1, 4)),
    ],
)
def test_a_scalar_is_found_at_its_value_and_all_else_at_its_key(path: Path, place: Place) -> None:
    """Empty scalars too are found at their key, and what is not there at its parent."""
    assert locate(root(), path) == place


def test_a_key_has_a_place_of_its_own() -> None:
    """An unknown field is found at its name."""
    assert locate(root(), ("a",), at_key=True) == (1, 1)


def test_find_and_walk_agree() -> None:
    """Every node that walk meets is the one that find finds."""
    tree = root()
    met = dict(walk(tree))

    assert len(met) == 9
    assert all(find(tree, path) is node for path, node in met.items())
    assert find(tree, ("b", "c", "0")) is None
    assert find(tree, ("b", "c", -1)) is None
