"""The table of marks: each system's pods are known by the labels that it really writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fast_yaml import load_yaml
from webhook.identity import Identity, identify
from webhook.sources import SOURCES

FILE = Path(__file__).parent / "golden" / "marks" / "pods.yaml"
UNREAD = dict.fromkeys(("framework", "role", "replica_index"))
# name: labels, annotations, what they must be read as
PODS: dict[str, tuple[dict[str, str], dict[str, str], Identity]] = {
    name: (pod["labels"], pod.get("annotations", {}), Identity(**{**UNREAD, **pod["read"]}))
    for name, pod in load_yaml(FILE.read_text()).items()
}


@pytest.mark.parametrize("pod", PODS)
def test_each_systems_own_labels_tell_the_run(pod: str) -> None:
    """A pod as each system really labels it is read as what it is."""
    labels, annotations, expected = PODS[pod]
    assert identify(labels, annotations, {}) == expected


def test_every_row_of_the_table_has_an_example() -> None:
    """No row is in the table without a pod here that proves it; the namespace has its own tests."""
    seen = {expected.source for _, _, expected in PODS.values()}
    assert seen == {source.name for source in SOURCES} - {"namespace"}
