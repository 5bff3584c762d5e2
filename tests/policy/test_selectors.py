"""A compiled selector agrees with Kubernetes' rules, and names the condition that fails."""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.policy.test_matched_pods import labels as label_maps
from tests.policy.test_matched_pods import selectors
from tests.wording import Wording, mentions
from webhook.placement.schema.selectors import LabelSelector
from webhook.policy.selectors import Selector, compile_selector


def selector(data: dict[str, Any]) -> Selector:
    """The selector as it stands in a document, compiled."""
    return compile_selector(LabelSelector.model_validate(data))


def expression(operator: str, *values: str) -> Selector:
    """A selector of one expression on the label `stage`."""
    item: dict[str, Any] = {"key": "stage", "operator": operator}
    return selector({"matchExpressions": [{**item, "values": list(values)} if values else item]})


def test_an_empty_selector_selects_everything() -> None:
    """No condition is no bar."""
    assert selector({}).matches({})
    assert selector({}).matches({"a": "b"})
    assert selector({}).failed({}) is None


@pytest.mark.parametrize(
    ("chosen", "labels", "holds"),
    [
        (expression("In", "dev"), {"stage": "dev"}, True),
        (expression("In", "dev", "test"), {"stage": "test"}, True),
        (expression("In", "dev", "test"), {"stage": "live"}, False),
        (expression("In", "dev", "test"), {}, False),
        (expression("NotIn", "dev"), {"stage": "dev"}, False),
        (expression("NotIn", "dev"), {"stage": "live"}, True),
        (expression("NotIn", "dev"), {}, True),
        (expression("Exists"), {"stage": ""}, True),
        (expression("Exists"), {}, False),
        (expression("DoesNotExist"), {"stage": ""}, False),
        (expression("DoesNotExist"), {}, True),
        (selector({"matchLabels": {"stage": ""}}), {}, False),
        (selector({"matchLabels": {"stage": ""}}), {"stage": ""}, True),
    ],
)
def test_each_operator_means_what_it_means_in_kubernetes(
    chosen: Selector, labels: dict[str, str], holds: bool
) -> None:
    """NotIn and DoesNotExist hold where the label is missing; empty is a value."""
    assert chosen.matches(labels) is holds
    assert (chosen.failed(labels) is None) is holds


def test_the_failing_condition_is_named_with_what_the_labels_say(wording: Wording) -> None:
    """Whoever asks why a policy did not match reads the condition and the value seen."""
    chosen = selector(
        {
            "matchLabels": {"tier": "batch"},
            "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["debug", "dev"]}],
        }
    )

    for labels, facts in (
        ({"tier": "web"}, ("tier=batch: ", "'web'")),
        ({}, ("tier=batch: ", "no such label")),
        ({"tier": "batch", "stage": "dev"}, ("stage NotIn [debug, dev]: ", "'dev'")),
    ):
        failed = chosen.failed(labels)
        assert failed is not None
        mentions(failed, *facts)
        wording(failed)


def test_keys_are_all_labels_that_are_read() -> None:
    """No policy may write a label that a selector reads, so the selector tells them."""
    chosen = selector(
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}],
        }
    )

    assert chosen.keys == {"a", "b"}


def test_what_is_tested_of_a_label_is_each_value_named_or_that_it_is_there() -> None:
    """Other values are one like the other, and to In and NotIn like none at all."""
    chosen = selector(
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["x", "y"]},
                {"key": "b", "operator": "Exists"},
                {"key": "c", "operator": "DoesNotExist"},
            ],
        }
    )

    assert chosen.tested == {("a", "1"), ("a", "x"), ("a", "y"), ("b", None), ("c", None)}


def test_equal_selectors_are_equal() -> None:
    """Two selectors that say the same are one value, in whatever order their labels stand."""
    assert selector({"matchLabels": {"a": "1", "b": "2"}}) == selector(
        {"matchLabels": {"b": "2", "a": "1"}}
    )


def model_of(data: dict[str, Any], labels: dict[str, str]) -> bool:
    """The rules once more, as slowly and plainly as can be."""
    for key, value in data["matchLabels"].items():
        if key not in labels or labels[key] != value:
            return False
    for item in data["matchExpressions"]:
        there = item["key"] in labels
        listed = there and labels[item["key"]] in item.get("values", [])
        wanted = {
            "In": listed,
            "NotIn": not listed,
            "Exists": there,
            "DoesNotExist": not there,
        }
        if not wanted[item["operator"]]:
            return False
    return True


@settings(deadline=None)
@given(selectors, label_maps)
def test_matching_failing_and_the_index_agree(data: dict[str, Any], own: dict[str, str]) -> None:
    """What matches fails nowhere; and both follow the rules."""
    chosen = selector(data)

    assert chosen.matches(own) is model_of(data, own)
    assert (chosen.failed(own) is None) is chosen.matches(own)
