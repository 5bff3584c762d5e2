"""What cannot be exported is refused: policy, field, reason and cure, all at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.exported.sets import text
from tests.fast_yaml import load_yaml
from tests.laws.strategies import Json, document
from tests.wording import Wording, mentions
from webhook.errors import NotExported
from webhook.exported.documents import documents
from webhook.exported.positioned_settings import placed_of
from webhook.interception import webhooks
from webhook.placement.placement_setting import PlacementSetting


def problems(*specs: Json) -> tuple[str, ...]:
    """What is refused of policies p0, p1, ...; nothing if they can be exported."""
    placed, _ = placed_of({"p.yaml": text(*specs).encode()})
    try:
        documents(placed, webhooks())
    except NotExported as error:
        return error.problems
    return ()


@dataclass(frozen=True, kw_only=True)
class NewSetting(PlacementSetting):
    """A setting of a class for which no CEL is written."""

    field = "tolerations.new"


def test_a_setting_without_cel_is_refused_not_left_out() -> None:
    """So that a class which is new in the webhook is never missing from exported policies."""
    placed, _ = placed_of({"p.yaml": text({"defaults": {"nodeSelector": {"a": "b"}}}).encode()})
    (policy,) = placed.policies
    new = NewSetting(policy="p0", part="requirements")  # type: ignore[abstract]
    placed = placed._replace(policies=[policy._replace(settings=[*policy.settings, new])])
    with pytest.raises(NotExported) as caught:
        documents(placed, webhooks())
    (problem,) = caught.value.problems
    assert problem.startswith("policy p0: requirements.tolerations.new: it is not exported; ")


def test_exceptions_and_rollouts_are_refused_by_name(wording: Wording) -> None:
    """An admission policy knows no time, and one enforcement of a policy only."""
    exception = document(
        "PlacementException",
        "debug-anna",
        {
            "policies": ["*"],
            "match": {"roles": ["worker"]},
            "until": "2027-01-01T00:00:00Z",
            "reason": "Anna looks for a leak.",
        },
    )
    rolled_out = {"defaults": {"nodeSelector": {"a": "b"}}, "rollout": {"namespaces": ["x"]}}
    placed, _ = placed_of({"p.yaml": f"{text(rolled_out)}\n---\n{json.dumps(exception)}".encode()})
    with pytest.raises(NotExported) as caught:
        documents(placed, webhooks())
    of_exception, of_rollout = caught.value.problems
    assert of_exception.startswith("exception debug-anna: ")
    mentions(of_exception, "ends", "admission policy")
    assert of_rollout.startswith("policy p0: rollout: ")
    mentions(of_rollout, "namespaces")
    wording(f"{of_exception}\n{of_rollout}")


@pytest.mark.parametrize(
    "case",
    load_yaml((Path(__file__).parent / "inexpressible.yaml").read_text()),
    ids=lambda case: case["case"],
)
def test_a_set_is_refused_with_policy_field_reason_and_cure(case: Json) -> None:
    """All at once; or it can be exported."""
    assert list(problems(*case["policies"])) == case["refused"]


def test_a_class_with_a_grace_period_is_refused_by_name(wording: Wording) -> None:
    """Which pods can run only there is known when all is merged."""
    placed, _ = placed_of({"p.yaml": text({"defaults": {"nodeSelector": {"a": "b"}}}).encode()})
    first, *others = placed.classes
    placed = placed._replace(classes=[replace(first, most_grace=25), *others])
    with pytest.raises(NotExported) as caught:
        documents(placed, webhooks())
    (problem,) = caught.value.problems
    mentions(problem, f"class {first.name}: maxTerminationGracePeriodSeconds", "leave it out")
    wording(problem)
