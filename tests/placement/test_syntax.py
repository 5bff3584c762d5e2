"""Labels, annotation keys and names are judged as Kubernetes judges them."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from webhook.placement.schema.syntax import (
    AnnotationKey,
    LabelKey,
    LabelValue,
    ObjectName,
    WindowsUserName,
    is_subdomain,
)


def takes(kind: Any, text: str) -> bool:
    """Whether a value of the annotated type may be `text`."""
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "key", ["a", "A.b_c-9", "n" * 63, "example.com/a", "a.b/c", "p" * 253 + "/" + "n" * 63]
)
def test_a_label_key_is_a_name_with_a_dns_prefix_perhaps(key: str) -> None:
    """A name of up to 63 characters, after a DNS subdomain and a slash if there is one."""
    assert takes(LabelKey, key)


@pytest.mark.parametrize(
    "key",
    ["", "a b", "-a", "a-", "n" * 64, "/a", "a/", "A.b/c", "a/b/c", "p" * 254 + "/n", "ä", "a\n"],
)
def test_other_texts_are_no_label_keys(key: str) -> None:
    """Spaces, borders, lengths, empty parts, capitals in the prefix and line ends are refused."""
    assert not takes(LabelKey, key)


def test_an_annotation_keys_prefix_may_have_capitals() -> None:
    """Kubernetes lowers an annotation's key before it looks, so capitals pass in the prefix."""
    assert takes(AnnotationKey, "Example.COM/Note")
    assert not takes(AnnotationKey, "exa mple/note")


def test_the_empty_text_is_a_label_value() -> None:
    """A label may be there without a value; a value that is there has rules."""
    assert takes(LabelValue, "")
    assert takes(LabelValue, "v" * 63)
    assert not takes(LabelValue, "v" * 64)
    assert not takes(LabelValue, "a b")
    assert not takes(LabelValue, "a\n")


def test_an_objects_name_is_a_dns_subdomain() -> None:
    """Lower case, digits, dashes and dots, with a letter or digit at the ends of each part."""
    assert takes(ObjectName, "a-1.b")
    assert not takes(ObjectName, "a..b")
    assert not takes(ObjectName, "A")
    assert not takes(ObjectName, "")


def test_a_very_long_text_is_refused_at_once() -> None:
    """The length is looked at before the expression, which would take quadratic time."""
    assert not is_subdomain("a-" * 1_000_000 + "!")


def test_a_windows_user_may_have_a_domain() -> None:
    """USER or DOMAIN\\USER, and none of the signs that Windows reserves."""
    assert takes(WindowsUserName, "ContainerUser")
    assert takes(WindowsUserName, "NT AUTHORITY\\SYSTEM")
    assert takes(WindowsUserName, "corp.example.com\\svc")
    assert not takes(WindowsUserName, "a\\b\\c")
    assert not takes(WindowsUserName, "a/b")
    assert not takes(WindowsUserName, "")


def test_an_editor_is_told_the_length_of_the_longest_label_key() -> None:
    """A prefix of 253 characters, a slash and a name of 63."""
    schema = TypeAdapter(dict[LabelKey, str]).json_schema()
    longest = "p" * 253 + "/" + "n" * 63
    assert takes(LabelKey, longest)
    assert schema["propertyNames"]["maxLength"] == len(longest)
