"""A tree of nodes gives back the values, and the place of each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.policy.findings import Path
from webhook.policy.yaml_text import trees
from webhook.policy.yaml_tree import Disputed, Node, Place, find, locate, plain, value, walk

TEXT = """\
a: 1
b:
  c: [x,
    {d: ""}]
  e: {f: }
"""


def root(text: str = TEXT) -> Node:
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


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("", "~", "null", "Null", "NULL"), type(None)),
        (("true", "FALSE", "True"), bool),
        (("0", "42", "-7", "+7"), int),
        # Go reads 1e3 as a number too, though YAML 1.1 wants a dot.
        (("1.5", ".5", "1.", "1e3", "-2.5E-3", ".inf", "-.INF", ".NaN", "12e4567"), float),
        # YAML 1.1 and 1.2 differ on these, so no field takes them.
        (("yes", "No", "ON", "off", "y", "N", "010", "08", "-010", "0x1F", "0o17"), Disputed),
        (("0b1", "1_000", "9" * 80), Disputed),
        # Dates, times, quantities and versions are text, as kubectl has them.
        (("spot", "1.2.3", "10Gi", "2024-01-01", "12:30:45", "-", "+", ".", "e3", "nan"), str),
        (("=", "<<", "0x", "yess"), str),
    ],
)
def test_an_unquoted_scalar_has_the_type_on_which_readers_agree(
    texts: tuple[str, ...], kind: type
) -> None:
    """Or none of them, if they do not."""
    for text in texts:
        assert type(plain(text)) is kind, text
        if kind in (int, str):
            assert plain(text) == kind(text)


@settings(deadline=None)
@given(st.text() | st.from_regex(r"[-+.0-9eExob_]{1,100}", fullmatch=True))
def test_any_text_has_a_value(text: str) -> None:
    """No text makes the reader fail, and text that stays text stays the same."""
    value = plain(text)

    assert value == text or not isinstance(value, str)
