"""What the index rules out without trying."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.placement.schema.selectors import LabelSelector
from webhook.policy.index import LabelTable

LABELS = {"stage": "prod", "team": "a"}


def _possible(selector: dict[str, Any] | None) -> bool:
    """Whether a policy that selects by this is left possible for LABELS."""
    wanted = None if selector is None else LabelSelector.model_validate(selector)
    # Another policy's bit, and one that never asks.
    others = LabelSelector.model_validate({"matchLabels": {"stage": "prod"}}), None
    found = LabelTable([wanted, *others]).possible(LABELS)
    assert found & 0b110 == 0b110
    return bool(found & 1)


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    named = {"values": list(values)} if values else {}
    return {"matchExpressions": [{"key": key, "operator": operator, **named}]}


@pytest.mark.parametrize(
    ("selector", "possible"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {"stage": "prod"}}, True),
        ({"matchLabels": {"stage": "dev"}}, False),
        (_expression("stage", "In", "dev", "prod"), True),
        (_expression("cost", "In", "dev", "prod"), False),
        (_expression("stage", "Exists"), True),
        (_expression("cost", "Exists"), False),
        (_expression("stage", "NotIn", "dev"), True),
        (_expression("stage", "NotIn", "dev", "prod"), False),
        (_expression("cost", "NotIn", "dev"), True),
        (_expression("cost", "DoesNotExist"), True),
        (_expression("stage", "DoesNotExist"), False),
        ({"matchLabels": {"stage": "prod"}, **_expression("team", "NotIn", "a")}, False),
        ({"matchLabels": {"stage": "prod"}, **_expression("stage", "NotIn", "prod")}, False),
    ],
)
def test_a_selector_of_one_label_is_never_tried_in_vain(
    selector: dict[str, Any] | None, possible: bool
) -> None:
    """Whatever its operator is; and what it cannot do with rules it out beside others."""
    assert _possible(selector) is possible


def test_of_several_labels_that_must_be_there_the_one_with_the_fewest_values_tells() -> None:
    """Exists has the most; the others are left to be tried."""
    both = {"matchLabels": {"stage": "prod"}, **_expression("cost", "Exists")}
    assert _possible(both)
    assert not _possible({"matchLabels": {"stage": "dev"}, **_expression("team", "Exists")})
