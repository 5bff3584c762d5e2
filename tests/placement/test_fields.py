"""The table of placement fields: it is whole, and agrees with the model and with the pod."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.placement.fields import BY_NAME, FIELDS, MAPS, SCALARS, Field, Shape, is_empty
from webhook.placement.pod import PodPlacement, parse_pod
from webhook.placement.schema.placement import PlacementModel, PlacementSettings


def test_every_field_of_the_model_has_a_row() -> None:
    """A field that documents may write is read, compiled, merged and patched by its row."""
    assert set(BY_NAME) == set(PlacementModel.outer_names()) - {"patchStrategy"}


def test_policies_set_the_fields_that_their_rows_say() -> None:
    """The model of overrides refuses the others."""
    assert {each.name for each in FIELDS if each.by_policies} == set(
        PlacementSettings.outer_names()
    ) - {"split", "nodeSelectorFrom", "tolerationsFrom"}


def test_every_attribute_of_a_pods_placement_has_a_row_or_a_reader_of_its_own() -> None:
    """The attributes that rows name come first, for a pod is read in their order."""
    special = ("required", "lists", "operating_system")
    named = {each.attribute for each in FIELDS if each.attribute}
    assert PodPlacement._fields[-len(special) :] == special
    assert set(PodPlacement._fields[: -len(special)]) == named


@pytest.mark.parametrize("field", [*MAPS.values(), *SCALARS.values()], ids=lambda each: each.name)
def test_a_field_is_read_from_its_own_place(field: Field) -> None:
    """And is unset where the pod does not have it."""
    value = {"a": "b"} if field.shape is Shape.MAP else type(field.unset)(7)
    pod: dict[str, Any] = {"metadata": {}, "spec": {}}
    unset: Any = {} if field.shape is Shape.MAP else field.unset
    assert getattr(parse_pod(pod), field.attribute) == unset
    pod[field.holder] = {field.name: value}
    assert getattr(parse_pod(pod), field.attribute) == value


@pytest.mark.parametrize(
    ("value", "nothing"),
    [(None, True), ("", True), ([], True), ({}, True), (0, False), (False, False), ("0", False)],
)
def test_zero_is_a_value(value: object, nothing: bool) -> None:
    """What is empty says nothing; a number or a boolean always says something."""
    assert is_empty(value) is nothing
