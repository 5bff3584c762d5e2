"""A finding is one line, as compilers write it."""

from dataclasses import replace

import pytest

from webhook.policy.findings import Finding, Kind, Path, condensed, path_text


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
