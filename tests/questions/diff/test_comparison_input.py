"""What a comparison reads of live pods."""

from __future__ import annotations

from typing import Any

import pytest

from webhook import names
from webhook.questions.diff.comparison_input import relevant_pod
from webhook.sources import SHIPPED

OF_NODE = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}


@pytest.mark.parametrize(
    ("writer", "node", "labels"),
    [("f:containers", None, {}), ("f:nodeName", "n1", OF_NODE)],
    ids=["scheduler", "author"],
)
def test_what_a_binding_added_to_a_pod_is_not_compared(
    writer: str, node: str | None, labels: dict[str, str]
) -> None:
    """The node, and the labels that the pod has from it; what the author wrote stays."""
    pod: dict[str, Any] = {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "uid": "u",
            "labels": {names.RUN: "r", **OF_NODE},
            "managedFields": [{"fieldsV1": {"f:spec": {writer: {}}}}],
        },
        "spec": {"containers": [{"name": "main"}], "nodeName": "n1"},
    }
    found = relevant_pod(pod, {"n": {}}, SHIPPED)
    assert found is not None
    assert found["spec"].get("nodeName") == node
    assert found["metadata"]["labels"] == {names.RUN: "r", **labels}
    assert pod["spec"]["nodeName"] == "n1"
