"""The table of marks: each system's pods are known by the labels that it really writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.marked_pods import PODS, shown, who
from webhook.sources import SOURCES


@pytest.mark.parametrize("pod", PODS, ids=[each["pod"] for each in PODS])
def test_each_systems_own_labels_tell_the_run(pod: dict[str, Any]) -> None:
    """A pod as each system really labels it is read as what it is."""
    assert shown(who(pod["labels"], pod.get("annotations"))) == pod["identity"]


def test_every_row_of_the_table_has_an_example() -> None:
    """No row is in the table without a pod here that proves it; the namespace has its own tests."""
    seen = {pod["identity"]["source"] for pod in PODS}
    assert seen == {source.name for source in SOURCES} - {"namespace"}
