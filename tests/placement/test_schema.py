"""The placement schema takes what Kubernetes takes, and says of all else what is wrong with it."""

import pytest
from pydantic import ValidationError

from tests.run.whole_runs import an_environment
from tests.wording import Wording, mentions
from webhook.placement.capacity import Mode
from webhook.placement.schema.placement import CapacitySetting, PlacementModel
from webhook.placement.schema.scheduling import Toleration
from webhook.placement.schema.security import PodSecurityContext
from webhook.strict import Strict


def errors(model: type[Strict], data: object) -> list[tuple[str, str]]:
    """Path and message of every error, the path with dots; empty if the model takes the data."""
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return [
            (".".join(map(str, line["loc"])), line["msg"])
            for line in error.errors(include_url=False)
        ]
    return []


def test_a_placement_is_dumped_as_it_was_written() -> None:
    """What was read, dumped by alias, is the JSON that goes into a pod, with nothing added."""
    full = an_environment()
    model = PlacementModel.model_validate(full, by_alias=True, by_name=False)
    assert model.model_dump(by_alias=True, exclude_none=True) == full


def test_a_model_can_be_made_with_names_in_snake_case() -> None:
    """Code writes the attributes' names, documents the outer ones."""
    setting = CapacitySetting(class_name="spot", mode=Mode.ALLOW)

    assert setting.model_dump(by_alias=True, exclude_none=True) == {
        "class": "spot",
        "mode": "Allow",
    }


def test_a_model_cannot_be_changed() -> None:
    """A policy set is shared between requests: its values are frozen."""
    with pytest.raises(ValidationError, match="frozen"):
        Toleration(operator="Exists").key = "spot"


def test_names_in_snake_case_are_not_fields_of_a_document(wording: Wording) -> None:
    """A document has camelCase only, and the near name is suggested."""
    [(at, said)] = errors(PlacementModel, {"node_selector": {"a": "b"}})
    assert at == "node_selector"
    mentions(said, "no such field", "did you mean 'nodeSelector'?")
    wording(said)


@pytest.mark.parametrize(
    ("model", "data", "path"),
    [
        (CapacitySetting, {"class": "a", "mode": "Prefer", "weight": True}, "weight"),
        (Toleration, {"key": "a", "value": 5}, "value"),
        (Toleration, {"key": "a", "value": True}, "value"),
        (PodSecurityContext, {"runAsNonRoot": 1}, "runAsNonRoot"),
        (PlacementModel, {"labels": {"a": None}}, "labels.a"),
    ],
)
def test_no_value_is_turned_into_another_type(model: type[Strict], data: object, path: str) -> None:
    """A number is no text, text is no number, one is not true, and null is no label's value."""
    assert [at for at, _ in errors(model, data)] == [path]
