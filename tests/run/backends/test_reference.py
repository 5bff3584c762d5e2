"""The page about engines is what the tables say."""

from __future__ import annotations

from pathlib import Path

from webhook.run.backends.reference import page
from webhook.run.backends.training_operator import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "engines.md"


def test_the_page_that_ships_is_fresh() -> None:
    """`make manifests` makes it again."""
    assert PAGE.read_text() == page(), "run: make manifests"


def test_each_kind_has_a_section() -> None:
    """With its version, because MPIJob has two."""
    text = page()

    for kind in KINDS.values():
        assert f"### {kind.kind} ({kind.api_version})" in text
    assert "### MPIJob (kubeflow.org/v1)" in text
