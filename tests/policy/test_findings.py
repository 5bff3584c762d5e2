"""A finding is one line, as compilers write it."""

from dataclasses import replace

import pytest

from webhook.policy.findings import Finding, Kind, Path, condensed, path_text
from webhook.shortening import first_few


def test_an_error_is_file_line_column_path_and_message() -> None:
    """The form that editors and people can follow to the place."""
    finding = Finding(
        "spot.yaml",
        17,
        19,
        "spec.overrides.tolerations[0].operator",
        "a 'message'",
    )

    assert str(finding) == "spot.yaml:17:19: spec.overrides.tolerations[0].operator: a 'message'"


def test_a_warning_says_that_it_is_one() -> None:
    """A warning is marked before its path; an error, the usual case, is not."""
    assert str(Finding("a.yaml", 1, 2, "spec", "x", "warning")) == "a.yaml:1:2: warning: spec: x"


def test_a_finding_about_the_text_has_no_path() -> None:
    """Where there is no document there is no path in it."""
    assert str(Finding("a.yaml", 1, 2, "", "not YAML")) == "a.yaml:1:2: not YAML"


def test_findings_sort_by_place() -> None:
    """By file, then line, then column, as numbers."""
    places = [("b", 1, 1), ("a", 10, 1), ("a", 9, 2), ("a", 9, 1)]
    findings = sorted(Finding(*place, "", "x") for place in places)

    assert [(each.file, each.line, each.column) for each in findings] == sorted(places)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "match", "roles", 0), "spec.match.roles[0]"),
        (("spec", "labels", "a.b/c"), "spec.labels[a.b/c]"),
        (("spec", "two\nlines"), "spec['two\\nlines']"),
        ((0, "kind"), "[0].kind"),
    ],
)
def test_a_path_is_written_as_kubernetes_writes_it(path: Path, text: str) -> None:
    """Fields with dots, indexes and keys in brackets, nothing that breaks a line."""
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [(["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more"), ([], "")],
)
def test_of_many_names_the_first_few_are_shown_with_the_count_of_others(
    names: list[str], text: str
) -> None:
    """A message is for a line; so many are named as are asked for."""
    assert first_few(names, 2) == text


def test_many_of_one_kind_about_one_field_become_one() -> None:
    """The first, with the number of the others; errors, and those of documents, stay."""
    level = [
        Finding(f"placementpolicies/p{at}", 0, 0, f"spec.overrides.tolerations[{at}]", f"like {at}",
                "warning", kind=Kind.EQUAL_PRIORITY)
        for at in range(5)
    ]  # fmt: skip
    (one,) = condensed(level)
    assert one.message.startswith("like 0; 4 more warnings like this: placementpolicies/p1, ")
    assert condensed(level[:3]) == level[:3]
    for kind in (Kind.EVERY_POD_REJECTED, Kind.DOCUMENT):
        others = [replace(each, severity="error", kind=kind) for each in level]
        assert condensed(others) == others
    alike = [replace(each, message="the same") for each in level]
    assert len(condensed(alike)) == 1
    assert condensed(alike, same_words=False) == alike
