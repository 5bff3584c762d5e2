"""Labels, annotation keys and names are judged as Kubernetes judges them."""

import re
from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from webhook.dns_names import is_subdomain
from webhook.placement.schema.syntax import (
    COUNTED_KEY_PATTERN,
    IS_NO_MOMENT,
    KEY_PATTERN,
    MAX_LISTED,
    MOMENT_PATTERN,
    AnnotationKey,
    LabelKey,
    LabelValue,
    ObjectName,
    WindowsUserName,
    crowded,
    long_lists,
)

MANY = MAX_LISTED + 1


def takes(kind: Any, text: str) -> bool:
    """Whether a value of the annotated type may be `text`."""
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        return False
    return True


PART = st.text("aZ0-._", max_size=5)


@given(st.lists(PART, min_size=1, max_size=3).map("/".join))
def test_the_short_pattern_of_a_key_is_the_long_one(text: str) -> None:
    """A definition has the short one many times."""
    assert bool(re.search(COUNTED_KEY_PATTERN, text)) == bool(re.search(KEY_PATTERN, text))
    assert bool(re.search(COUNTED_KEY_PATTERN, text)) == takes(LabelKey, text)


# By type: texts that a value of it may be, and others.
TEXTS: list[tuple[Any, list[str], list[str]]] = [
    (
        LabelKey,
        ["a", "A.b_c-9", "n" * 63, "example.com/a", "a.b/c", "p" * 253 + "/" + "n" * 63],
        # Blanks, ends, lengths, empty parts, capitals in the prefix and line ends.
        [
            "",
            "a b",
            "-a",
            "a-",
            "n" * 64,
            "/a",
            "a/",
            "A.b/c",
            "a/b/c",
            "p" * 254 + "/n",
            "ä",
            "a\n",
        ],
    ),
    # Kubernetes lowers an annotation's key before it looks.
    (AnnotationKey, ["Example.COM/Note"], ["exa mple/note"]),
    (LabelValue, ["", "v" * 63], ["v" * 64, "a b", "a\n"]),
    (ObjectName, ["a-1.b"], ["a..b", "A", ""]),
    (
        WindowsUserName,
        ["ContainerUser", "NT AUTHORITY\\SYSTEM", "corp.example.com\\svc"],
        ["a\\b\\c", "a/b", ""],
    ),
]


@pytest.mark.parametrize(("kind", "good", "bad"), TEXTS)
def test_a_type_takes_what_kubernetes_takes(kind: Any, good: list[str], bad: list[str]) -> None:
    """And nothing else."""
    assert [text for text in (*good, *bad) if takes(kind, text)] == good


def test_a_very_long_text_is_refused_at_once() -> None:
    """The length is looked at before the expression, which would take quadratic time."""
    assert not is_subdomain("a-" * 1_000_000 + "!")


def test_the_schema_has_the_maximum_length_of_a_label_key() -> None:
    """A prefix of 253 characters, a slash and a name of 63."""
    schema = TypeAdapter(dict[LabelKey, str]).json_schema()
    longest = "p" * 253 + "/" + "n" * 63
    assert takes(LabelKey, longest)
    assert schema["propertyNames"]["maxLength"] == len(longest)


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


def test_lists_of_values_have_no_limit() -> None:
    """No rule looks at each namespace of a policy."""
    assert [*crowded({"namespaces": ["a"] * 1000, "values": ["b"] * 1000}, ())] == []


def test_wrong_types_are_reported_by_another_check() -> None:
    """Raw documents hold anything."""
    wrong: list[Any] = [None, 3, "text" * 100, {"labels": "text" * 100, "matchLabelKeys": {}}]
    for value in wrong:
        assert [*crowded(value, ())] == [*long_lists(value, ())] == []


def test_every_day_of_the_century_is_taken_and_no_other() -> None:
    """As the calendar has it: the API server judges by the pattern alone."""
    form = re.compile(MOMENT_PATTERN)
    for year, month, day in product(range(2000, 2100), range(14), range(33)):
        try:
            there = bool(date(year, month, day))
        except ValueError:
            there = False
        text = f"{year}-{month:02}-{day:02}T18:00:00Z"
        assert bool(form.fullmatch(text)) == there, text


@pytest.mark.parametrize("text", re.findall(r"20\S+", IS_NO_MOMENT))
def test_what_is_given_as_an_example_is_one(text: str) -> None:
    """Both zones."""
    assert re.fullmatch(MOMENT_PATTERN, text)
