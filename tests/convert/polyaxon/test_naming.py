"""A Run's name is one that Kubernetes takes, and as near to Polyaxon's as can be."""

from __future__ import annotations

import pytest

from webhook.convert.polyaxon.complete import file_name, run_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mnist", "mnist"),
        ("My_Classifier", "my-classifier"),
        ("org/etl:v2", "etl"),
        ("2nd try", "run-2nd-try"),
        ("---", "run"),
        ("", "run"),
    ],
)
def test_a_name_becomes_a_dns_label(text: str, name: str) -> None:
    """Small letters, digits and hyphens, a letter first."""
    assert run_name(text, 9) == name


def test_a_long_name_leaves_room_for_role_and_index() -> None:
    """A pod's name is its hostname: 63 characters in all, and no hyphen at the cut."""
    assert run_name("a" * 80, len("-worker-6")) == "a" * 54
    assert run_name("a" * 53 + "-b", len("-worker-6")) == "a" * 53


def test_a_file_gives_the_name_where_the_document_has_none() -> None:
    """Without folder and suffix."""
    assert file_name("runs/polyaxon-file.train.yml") == "polyaxon-file"
