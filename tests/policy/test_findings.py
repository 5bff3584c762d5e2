"""A finding is one line, as compilers write it."""

import pytest

from webhook.policy.findings import Finding, Path, first_few, path_text


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
def test_of_many_names_the_first_few_are_told_and_how_many_more(
    names: list[str], text: str
) -> None:
    """A message is for a line; so many are named as are asked for."""
    assert first_few(names, 2) == text
