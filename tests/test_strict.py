"""The strict base reports in words that are meant for people."""

import pytest
from pydantic import ValidationError

from tests.wording import mentions
from webhook.placement.schema.scheduling import NodeSelector
from webhook.pod_schema.field_checks import faults
from webhook.strict import Strict, guess, own_error, quoted


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("nodeSelectors", "nodeSelector"),
        ("node_selector", "nodeSelector"),
        ("NODESELECTOR", "nodeSelector"),
        ("toleration", "tolerations"),
    ],
)
def test_a_similar_word_is_suggested(word: str, meant: str) -> None:
    """Slips of the keyboard, of the plural and of the case."""
    assert guess(word, ("nodeSelector", "tolerations")) == f"; did you mean {meant!r}?"


def test_a_word_without_a_similar_one_gets_no_suggestion() -> None:
    """A wrong guess is worse than none; a very long word is not even compared."""
    assert guess("colour", ("nodeSelector", "tolerations")) == ""
    assert guess("nodeSelector" * 100_000, ("nodeSelector",)) == ""


def test_a_value_is_shown_in_quotes_and_not_at_length() -> None:
    """A line of a terminal holds it."""
    assert quoted("a\nb") == "'a\\nb'"
    assert quoted(5) == "'5'"
    assert len(quoted("x" * 10_000)) < 70


def test_a_message_with_braces_is_not_a_template() -> None:
    """What a user wrote stands in the message as it was."""
    assert own_error("{a} is {wrong}").message() == "{a} is {wrong}"


def test_every_field_of_every_model_has_a_description() -> None:
    """The schema, kubectl explain and the reference are made of them."""
    models = [Strict]
    for model in models:
        models += model.__subclasses__()

    assert len(models) > 25
    for model in models:
        assert model.__doc__
        for name, field in model.model_fields.items():
            assert (field.description or "").endswith("."), f"{model.__name__}.{name}"


def test_a_list_in_place_of_a_mapping_of_one_field_has_its_cure() -> None:
    """In policies and in pods: the terms of a node selector are written without their field."""
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    with pytest.raises(ValidationError) as caught:
        NodeSelector.model_validate([{"matchExpressions": []}])
    spec: dict[str, object] = {path[0]: {path[1]: {path[2]: [{"matchExpressions": []}]}}}
    (fault,) = faults(spec, "PodSpec", whole=False)
    assert fault.path == path
    for message in (fault.message, caught.value.errors()[0]["msg"]):
        mentions(message, "not a list", "nodeSelectorTerms")
