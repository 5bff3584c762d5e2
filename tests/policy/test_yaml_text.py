"""Text becomes trees, documents one by one, and stops at what cannot be read."""

import pytest

from webhook.policy.yaml_text import MAX_DEPTH, MAX_REPEATED, Unreadable, character_place, trees
from webhook.policy.yaml_tree import Mapping, value


def values(text: str) -> list[object]:
    """Every document of a text as plain values."""
    return [value(tree.root) for tree in trees(text)]


def test_documents_come_one_by_one() -> None:
    """The first can be had though the second cannot be read."""
    documents = trees("a: 1\n---\nb: [")

    assert value(next(documents).root) == {"a": 1}
    with pytest.raises(Unreadable) as caught:
        next(documents)
    assert caught.value.place == (4, 1)


def test_quoted_and_block_scalars_are_text() -> None:
    """What stands in quotes or in a block is never a number or a boolean."""
    assert values("""[1, "1", '1', true, "true"]""") == [[1, "1", "1", True, "true"]]
    assert values("a: |-\n  5\nb: >-\n  yes\n") == [{"a": "5", "b": "yes"}]


def test_an_anchor_holds_for_its_document() -> None:
    """Anchors are forgotten at the end of a document, as YAML has it."""
    with pytest.raises(Unreadable, match="no anchor &a"):
        values("a: &a 1\nb: *a\n---\nc: *a\n")


def test_an_anchor_may_be_set_again() -> None:
    """The alias repeats the last one above it."""
    assert values("[&a 1, *a, &a 2, *a]") == [[1, 1, 2, 2]]


def test_a_merge_key_fills_in_missing_fields() -> None:
    """What stands beside it wins, and of several sources the first."""
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {c: 3, <<: [*x, *y]}"

    assert values(text) == [
        {"x": {"a": 1, "b": 1}, "y": {"b": 2, "c": 2}, "z": {"a": 1, "b": 1, "c": 3}}
    ]


def test_a_quoted_merge_key_and_one_as_value_are_text() -> None:
    """Only `<<` as a plain key merges."""
    assert values("a: <<") == [{"a": "<<"}]
    assert values('"<<": {a: 1}') == [{"<<": {"a": 1}}]


def test_the_first_of_two_keys_is_kept_and_the_second_is_a_fault() -> None:
    """Reading goes on, with the fault at the second key."""
    [tree] = trees("a: 1\nb: 2\na: 3\n")

    assert value(tree.root) == {"a": 1, "b": 2}
    [fault] = tree.faults
    assert (fault.place, fault.key) == ((3, 1), "a")
    assert isinstance(tree.root, Mapping)
    assert fault.node is tree.root


def test_the_limits_are_wide_enough() -> None:
    """Depth and repetition end far beyond what policies need."""
    assert values("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    assert values(f"a: &a [{', '.join(['x'] * 99)}]\nb: [{', '.join(['*a'] * 200)}]")
    assert MAX_REPEATED == 200 * 100


def test_a_byte_order_mark_within_the_text_is_refused() -> None:
    """It cannot be seen, and would make another key of the one that it stands before."""
    with pytest.raises(Unreadable, match=r"character '\\ufeff'"):
        values("a: 1\n\ufeffb: 2")


@pytest.mark.parametrize(
    ("index", "place"), [(0, (1, 1)), (1, (1, 2)), (2, (1, 3)), (3, (2, 1)), (5, (3, 1))]
)
def test_characters_have_a_line_and_a_column(index: int, place: tuple[int, int]) -> None:
    """Both from 1; a line's end belongs to the line."""
    assert character_place("ab\nc\nd", index) == place


@pytest.mark.parametrize("between", ["", " ", "\n", "\n\n  "])
def test_json_documents_may_follow_each_other(between: str) -> None:
    """As kubectl reads them: also with a character of two escapes in them."""
    text = between.join(['{"a": "\\ud83d\\ude00"}', '{"b": {"c": [1]}}', "{}"]) + "\n"
    assert values(text) == [{"a": "\N{GRINNING FACE}"}, {"b": {"c": [1]}}, {}]


@pytest.mark.parametrize("between", ["", "  ", "\n", "\n ", " \n\n   "])
@pytest.mark.parametrize("first", ['{"a": 1}', '{"a":\n 1}', '\n {"a": 1}'])
def test_each_json_document_has_its_place_in_the_file(first: str, between: str) -> None:
    """Of one line or several, after a document or a blank on the same line."""
    text = f'{first}{between}{{"b": 2,\n "c": 3}}{{"d": 4}}'
    for tree in trees(text):
        assert isinstance(tree.root, Mapping)
        for name, (key, child) in tree.root.entries.items():
            assert key.place == character_place(text, text.index(f'"{name}"'))
            assert child.place == character_place(text, text.index(str("abcd".index(name) + 1)))


def test_flow_mappings_of_yaml_do_not_follow_each_other() -> None:
    """The first is read, the error is at the second, as kubectl has it."""
    documents = trees('{"a": 1}\n{b: 2}')
    assert value(next(documents).root) == {"a": 1}
    with pytest.raises(Unreadable) as caught:
        next(documents)
    assert caught.value.place[0] == 2


def test_a_json_document_after_another_is_as_limited_as_the_first() -> None:
    """In depth, with the place in the file."""
    deep = '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)
    with pytest.raises(Unreadable, match="levels deep") as caught:
        values('{"b": 1} ' + deep)
    assert caught.value.place == (1, 10 + 5 * MAX_DEPTH)
    with pytest.raises(Unreadable):
        values('{"b": 1}' + '{"a":' * 100_000)
