"""The table of placement fields: it is whole, and agrees with the model and with the pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import PLAIN_VALUES
from webhook.placement.fields import (
    BY_NAME,
    FIELDS,
    MAPS,
    PLAIN_MAPS,
    SCALARS,
    Field,
    Shape,
    is_empty,
)
from webhook.placement.fold import fold
from webhook.placement.merge import MergeContext, merge
from webhook.placement.placement_setting import PARTS, Part
from webhook.placement.pod import PodPlacement, parse_pod
from webhook.placement.schema.placement import PlacementModel, PlacementSettings
from webhook.placement.settings import ScalarSetting


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


def expected(field: Field, part: Part, wanted: Any, own: Any) -> Any:
    """What a pod with this value comes to beside a setting, by the row; None if it is rejected."""
    is_unset = own in (field.unset, field.silent)
    if part == "requirements" and field.requirement == "maximum":
        return min(own, wanted) if is_unset or own <= wanted else None
    if is_unset or own == wanted:
        return wanted
    if part == "requirements":
        return None
    overrides = "keep" if part == "defaults" else field.overrides
    return {"set": wanted, "keep": own, "reject": None}[overrides]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("field", SCALARS.values(), ids=lambda field: field.name)
def test_a_scalar_is_merged_as_its_row_says(field: Field, part: Part) -> None:
    """Into a pod without it, with what the API server fills in, with this value, and others."""
    low, wanted, high = (0, 20, 45) if isinstance(field.unset, int) else ("low", "own", "high")
    setting = ScalarSetting(policy="p", part=part, name=field.name, value=wanted)
    for written in (None, field.unset, field.silent, low, wanted, high):
        spec = {} if written is None else {field.name: written}
        pod = parse_pod({"metadata": {}, "spec": spec})
        merged = merge(fold(["p"], [setting]), pod, (), MergeContext({}))
        value = None if merged.rejections else getattr(merged.placement, field.attribute)
        own = field.silent if written is None else written
        assert value == expected(field, part, wanted, own), written


def test_the_laws_have_values_of_every_plain_field() -> None:
    """So each is in random pods and policies, or in those of fuzzing."""
    assert set(PLAIN_VALUES) == {*SCALARS, *(field.name for field in PLAIN_MAPS)}


@pytest.mark.parametrize(
    ("value", "nothing"),
    [(None, True), ("", True), ([], True), ({}, True), (0, False), (False, False), ("0", False)],
)
def test_zero_is_a_value(value: object, nothing: bool) -> None:
    """What is empty says nothing; a number or a boolean always says something."""
    assert is_empty(value) is nothing
