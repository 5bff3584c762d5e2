"""A document has at most so many items in one place as the API server's rules can pay for."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.placement.schema.limits import MAX_LISTED, crowded, long_lists

MANY = MAX_LISTED + 1


def keys(count: int) -> dict[str, str]:
    """So many labels."""
    return {f"k{number}": "v" for number in range(count)}


@pytest.mark.parametrize("field", ["nodeSelector", "labels", "annotations", "matchLabels"])
def test_a_mapping_by_free_keys_has_a_limit(field: str) -> None:
    """Wherever it stands; the message says how many there are."""
    document = {"match": [{field: keys(MANY)}]}

    assert [*crowded(document, ("spec",))] == [
        (("spec", "match", 0, field), f"want at most {MAX_LISTED} keys, not {MANY}")
    ]
    assert [*crowded({"match": [{field: keys(MAX_LISTED)}]}, ())] == []


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"tolerations": [{}] * MANY}, ("tolerations",)),
        ({"a": [{"matchLabelKeys": ["k"] * MANY}]}, ("a", 0, "matchLabelKeys")),
    ],
)
def test_a_list_that_rules_look_into_has_a_limit(document: Any, path: tuple[str, ...]) -> None:
    """Lists of objects, and lists of keys that rules compare with others."""
    assert [*crowded(document, ())] == [(path, f"want at most {MAX_LISTED} items, not {MANY}")]


def test_lists_of_words_have_none() -> None:
    """No rule looks at each namespace of a policy."""
    assert [*crowded({"namespaces": ["a"] * 1000, "values": ["b"] * 1000}, ())] == []


def test_what_is_of_a_wrong_type_is_said_elsewhere() -> None:
    """Raw documents hold anything."""
    wrong: list[Any] = [None, 3, "text" * 100, {"labels": "text" * 100, "matchLabelKeys": {}}]
    for value in wrong:
        assert [*crowded(value, ())] == [*long_lists(value, ())] == []
