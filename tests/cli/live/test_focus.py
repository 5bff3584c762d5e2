"""Fields go by the names that people, stamps and traces give them."""

from __future__ import annotations

import pytest

from tests.comparison.worlds import policies
from tests.policy_tests.writing import policy
from webhook.cli.live.focus import concerns_path, field_path, is_within, touched

SPOT = policies(policy("spots", "overrides: {capacity: [{class: spot, mode: Allow}]}"))


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("tolerations", "tolerations"),
        ("nodeSelector.pool", "nodeSelector[pool]"),
        ("spec.nodeSelector.cloud.google.com/pool", "nodeSelector[cloud.google.com/pool]"),
        ("metadata.labels.app", "labels[app]"),
        ("tolerations[nvidia.com/gpu]", "tolerations[nvidia.com/gpu]"),
        ("affinity.nodeAffinity.required", "affinity.nodeAffinity.required"),
        (".spec.nodeSelector.pool", "nodeSelector[pool]"),
        ("spec.template.spec.tolerations", "tolerations"),
        ("spec.template.metadata.labels.app", "labels[app]"),
        (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "affinity.nodeAffinity.required",
        ),
    ],
)
def test_a_path_may_be_written_as_in_a_pod(said: str, path: str) -> None:
    """Keys with dots and slashes are one step."""
    assert field_path(said) == path


def test_a_field_is_within_itself_and_what_holds_it() -> None:
    """And not within what only begins alike."""
    assert is_within("tolerations[gpu]", "tolerations")
    assert is_within("affinity.nodeAffinity.required", "affinity")
    assert not is_within("nodeSelector[pool-2]", "nodeSelector[pool]")


def test_a_capacity_class_has_a_say_in_tolerations_and_node_affinity() -> None:
    """In those of its own taints."""
    (setting,) = SPOT.policies[0].settings
    for path, says in (
        ("tolerations", True),
        ("tolerations[spot]", True),
        ("tolerations[gpu]", False),
        ("affinity", True),
        ("nodeSelector", False),
    ):
        assert touched("capacity[spot]", path, SPOT) is says
        assert concerns_path(setting, path) is says
