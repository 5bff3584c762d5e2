"""An exception says which policies, which pods, until when and why; all of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.test_model import errors
from tests.wording import Wording, mentions
from webhook.policy.exception_model import PlacementException

SPEC: dict[str, Any] = {
    "policies": ["spot"],
    "match": {"namespaces": ["research", "ml"], "roles": ["worker"]},
    "until": "2026-12-01T18:00:00Z",
    "reason": "Anna looks for a leak.",
}


def an_exception(**spec: Any) -> dict[str, Any]:
    """An exception document; a field that is None is left out."""
    whole = {**SPEC, **spec}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PlacementException",
        "metadata": {"name": "debug-anna"},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def problems(**spec: Any) -> list[tuple[str, str]]:
    """Path and message of what is wrong with an exception."""
    return errors(PlacementException, an_exception(**spec))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"policies": ["*"]},
        {"policies": ["a", "b.c-d"]},
        {"match": {"namespaces": ["*"]}},
        {"match": {"coordinator": False}},
        {"until": "2026-12-01T18:00:00+01:00"},
        {"until": "2028-02-29T00:00:00-23:59"},
        {"reason": "x" * 500},
    ],
)
def test_what_says_everything_is_taken(spec: dict[str, Any]) -> None:
    """By name or all policies; a condition; a moment with its zone; a reason."""
    assert problems(**spec) == []


@pytest.mark.parametrize("field", SPEC)
def test_every_field_is_required(field: str) -> None:
    """Nothing about an exception is a matter of course."""
    assert [where for where, _ in problems(**{field: None})] == [f"spec.{field}"]


@pytest.mark.parametrize(
    ("spec", "where", "says"),
    [
        ({"policies": []}, "policies", "at least 1 item"),
        ({"policies": ["*", "a"]}, "policies", "leave out the others"),
        ({"policies": ["a", "b", "a"]}, "policies.2", "that of [0] too"),
        ({"policies": ["spot-*"]}, "policies.0", "'spot-*'"),
        ({"policies": [f"p{n}" for n in range(65)]}, "policies", "at most 64"),
        ({"match": {}}, "match", 'say so: namespaces: ["*"]'),
        ({"match": {"podSelector": {}, "namespaceSelector": {}}}, "match", "every pod pass"),
        ({"until": "2026-12-01"}, "until", "'2026-12-01' is no moment"),
        ({"until": "2026-12-01T18:00:00"}, "until", "zone"),
        ({"until": "2026-12-01 18:00:00Z"}, "until", "such as 2026-12-01T18:00:00Z"),
        ({"until": "2026-12-01T18:00:00.5Z"}, "until", "is no moment"),
        ({"until": "2026-02-30T18:00:00Z"}, "until", "is no moment"),
        ({"until": "tomorrow"}, "until", "is no moment"),
        ({"reason": ""}, "reason", "at least 1 character"),
        ({"reason": " \n\t"}, "reason", "say why"),
        ({"reason": "x" * 501}, "reason", "at most 500 characters"),
    ],
)
def test_what_is_wrong_is_said_with_the_cure(
    spec: dict[str, Any], where: str, says: str, wording: Wording
) -> None:
    """At its field, and nothing else beside it."""
    [(at, message)] = problems(**spec)
    assert at == f"spec.{where}"
    mentions(message, says)
    if "should have" not in message:  # else it is pydantic's
        wording(message)


@pytest.mark.parametrize("field", ["namespace", "generateName"])
def test_an_exception_is_of_the_whole_cluster_and_has_a_name(field: str) -> None:
    """Stamps and the audit log tell of it by its name."""
    document = an_exception()
    document["metadata"][field] = "x"
    [(at, message)] = errors(PlacementException, document)
    assert at == f"metadata.{field}"
    assert "exception" in message
