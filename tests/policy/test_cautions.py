"""A policy that can match no pod is told so, at the condition that rules all pods out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.objects import an_object
from tests.policy.test_matched_pods import holds, match, matches, subjects
from tests.wording import Wording, mentions
from webhook import names
from webhook.policy.matched_pods import unmatchable
from webhook.policy.policy_documents import parse
from webhook.policy.subject import Subject

Json = dict[str, Any]


@settings(max_examples=examples(200), deadline=None)
@given(matches, st.lists(matches, max_size=2), st.lists(subjects, min_size=1, max_size=5))
def test_a_reported_finding_holds_for_every_pod(
    written: Json, excludes: list[Json], some: list[Subject]
) -> None:
    """By the conditions themselves."""
    if unmatchable(match(written), [match(each) for each in excludes]):
        for subject in some:
            assert not holds(written, subject) or any(holds(each, subject) for each in excludes)


OFF_GPUS: Json = {"capacity": [{"class": "gpu", "mode": "Prevent"}]}
BY_GPU: Json = {"resources": ["nvidia.com/gpu"]}


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"exclude": [BY_GPU], "overrides": OFF_GPUS}, True),
        ({"exclude": [{"resources": ["nvidia.com/*"]}], "overrides": OFF_GPUS}, True),
        (
            {
                "exclude": [{"requests": [{"resource": "nvidia.com/gpu", "atLeast": 1}]}],
                "overrides": {"nodeSelector": {"pool": "cpu"}},
            },
            True,
        ),
        ({"exclude": [BY_GPU, {"resourceClaims": True}], "overrides": OFF_GPUS}, False),
        ({"match": {"resourceClaims": False}, "exclude": [BY_GPU], "overrides": OFF_GPUS}, False),
        ({"exclude": [{"resources": ["cpu"]}], "overrides": OFF_GPUS}, False),
        ({"exclude": [BY_GPU], "overrides": {"labels": {"a": "b"}}}, False),
        ({"match": BY_GPU, "overrides": OFF_GPUS}, False),
    ],
)
def test_claims_are_not_forgotten_where_a_resource_excludes(
    spec: Json, warned: bool, wording: Wording
) -> None:
    """A pod with a claim would stay off the only nodes that have its device, and wait for ever."""
    document = an_object(names.API_VERSION, names.POLICY_KIND, "off-gpus", spec)
    texts = [str(each) for each in parse({"p.json": orjson.dumps(document)}).warnings]
    assert len(texts) == warned, texts
    for text in texts:
        mentions(text, "spec.exclude[0].re", "resourceClaims: true", "match.resourceClaims")
        wording(text)
