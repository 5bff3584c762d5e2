"""The judgement of a whole set finds what the webhook refuses to write."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.judgement.together.test_warnings import policy as requiring
from tests.judgement.together.test_warnings import pool
from tests.policy.examples import EVERYTHING
from webhook.cluster_objects.policy_objects import text_of
from webhook.judgement.set_judgement import (
    MOST_BYTES,
    Objects,
    count_bytes,
    judge_set,
    load_served,
)
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.policy.findings import Kind
from webhook.policy.policy_documents import parse
from webhook.policy.yaml_text import trees
from webhook.policy.yaml_tree import value

RESOURCES = {
    "PlacementPolicy": "placementpolicies",
    "CapacityClass": "capacityclasses",
    "PlacementException": "placementexceptions",
}


def policy(text: str) -> dict[str, Any]:
    """A policy that has the text in an annotation that it sets."""
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "wide", "labels": {"not": "counted"}},
        "spec": {"defaults": {"annotations": {"example.com/note": text}}},
    }


@pytest.mark.parametrize("beyond", [0, 1])
def test_an_object_that_is_too_large_to_write_is_an_error_and_still_serves(beyond: int) -> None:
    """Where it is stored, or in a folder, it has its effect."""
    room = MOST_BYTES - len(text_of("placementpolicies", policy("")))
    documents = parse({"wide.yaml": orjson.dumps(policy("x" * (room + beyond)))})
    found = [each for each in judge_set(documents, UNBOUNDED).findings if each.severity == "error"]
    assert [each.kind for each in found] == [Kind.TOO_LARGE] * beyond
    served = load_served(documents)
    assert served.faults == tuple(found)
    assert served.policies.policies
    for each in found:
        assert f"{MOST_BYTES + 1} bytes; at most {MOST_BYTES} are allowed" in each.text


def test_a_set_of_a_cluster_serves_before_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods wait for no proof; what is found then is what the same documents in files have."""
    texts = {
        f"placementpolicies/{name}": orjson.dumps(requiring(name, requirements=pool(name)))
        for name in "ab"
    }
    reader = Objects()
    with monkeypatch.context() as patch:
        patch.setattr("webhook.judgement.set_judgement.faults", None)
        served = reader.served(texts)
    assert (len(served.policies.policies), served.faults) == (2, None)
    found = reader.checked(served).faults
    assert found == load_served(reader.documents(texts)).faults
    assert {each.kind for each in found or ()} == {Kind.EVERY_POD_REJECTED}


def test_a_document_is_counted_as_the_object_that_is_written() -> None:
    """With every field, whatever form the file has."""
    documents = parse({"all.yaml": EVERYTHING.encode()}).documents
    raw = [value(tree.root) for tree in trees(EVERYTHING)]
    assert [count_bytes(each) for each in documents] == [
        len(text_of(RESOURCES[each["kind"]], each)) for each in raw
    ]
