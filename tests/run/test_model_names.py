"""A run's name is that of its Service, and its pods' names are hostnames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.run.whole_runs import a_run
from tests.wording import Wording, mentions
from webhook.run.run_documents import read_runs

Json = dict[str, Any]


def findings(run: Json) -> list[str]:
    """What is wrong with a Run: path and message of each."""
    found = read_runs({"x": json.dumps(run).encode()})
    return [f"{finding.path}: {finding.message}" for finding in found.findings]


@pytest.mark.parametrize(
    ("name", "replicas", "most"),
    [
        ("m" * 55, None, 54),
        ("m" * 54, {"master": {}, "evaluator": {}}, 51),
        ("m" * 51, {"worker": {"count": 10000}}, 51),
        ("m" * 52, {"worker": {"count": 10000}}, 51),
        ("m" * 55, {"worker": {"count": 10}}, 54),
        ("m" * 54, {"worker": {"count": 11}}, 53),
    ],
)
def test_names_stay_within_63_characters_with_the_largest_index(
    name: str, replicas: Json | None, most: int, wording: Wording
) -> None:
    """`<run>-<role>-<index>` is the pod's hostname too."""
    run = a_run(framework="tensorflow")
    run["metadata"]["name"] = name
    if replicas:
        run["spec"]["replicas"] = {"worker": {}, **replicas}

    found = findings(run)
    assert len(found) == (len(name) > most)
    for each in found:
        assert each.startswith("metadata.name: ")
        mentions(each, "<run>-<role>-<index>", "at most 63", f"at most {most}")
        wording(each)


@pytest.mark.parametrize("name", ["1mnist", "Mnist", "mnist.1", "mnist-", "", "m" * 64])
def test_a_name_is_that_of_a_service_too(name: str, wording: Wording) -> None:
    """A letter at the beginning, and no dots; and one finding says all of it."""
    run = a_run()
    run["metadata"]["name"] = name

    (only,) = findings(run)
    assert only.startswith("metadata.name: ")
    mentions(only, "Service", "1 to 63", "lower-case letters")
    wording(only)
