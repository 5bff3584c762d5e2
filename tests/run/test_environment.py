"""Environments laid over a pod template."""

from __future__ import annotations

from typing import Any

import pytest

from webhook import names
from webhook.placement.capacity_request import InvalidRequest
from webhook.placement.schema.placement import PlacementModel
from webhook.run.environment import bottom, placed, upon

Json = dict[str, Any]


def environment(**fields: Any) -> PlacementModel:
    return PlacementModel.model_validate(fields)


def asking(text: str) -> Json:
    return {"metadata": {"annotations": {names.CAPACITY: text, "note": "n"}}, "spec": {}}


def test_a_template_without_environment_keeps_its_placement() -> None:
    """Fields of a later Kubernetes too."""
    spec = {"affinity": {"novel": {}}, "tolerations": [{"operator": "Gt"}], "nodeName": "n"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**spec, "containers": []}}
    found = placed(bottom(template))
    assert found == ({"a": "b"}, {}, spec)


def test_capacity_goes_by_class_from_the_templates_annotation_on() -> None:
    """Where the webhook reads it: the annotation of the pod."""
    below = bottom(asking("spot=Allow, gpu=Prefer:7,old=Prefer"))
    layer = environment(capacity=[{"class": "spot", "mode": "Constrain"}])
    found = placed(upon(below, [None, layer]))
    assert found.annotations == {
        "note": "n",
        names.CAPACITY: "spot=Constrain,gpu=Prefer:7,old=Prefer:50",
    }


def test_an_annotation_that_cannot_be_read_is_an_error() -> None:
    """Of whatever class it speaks: which there are only the webhook knows."""
    with pytest.raises(InvalidRequest, match="'Maybe'"):
        bottom(asking("any-class-at-all=Allow,spot=Maybe"))


def test_a_field_that_a_layer_clears_is_gone() -> None:
    """By Replace with nothing."""
    below = bottom({"spec": {"nodeSelector": {"a": "b"}}})
    layer = environment(patchStrategy="Replace", nodeSelector={}, capacity=[])
    assert placed(upon(below, [layer])) == ({}, {}, {})
