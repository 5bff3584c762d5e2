"""A fault of Fairlead's own is about one pod, and all others are judged."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.controller.policies.test_pod_results import WORLD, pod
from tests.wording import Wording, mentions
from webhook.controller.policies.pod_results import UNREADABLE, PodJudge
from webhook.errors import InvalidPod
from webhook.evaluation import one_pod as guarded
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.world import World


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the product."""
    monkeypatch.setattr(guarded, "FAULTS", (Exception,))


@pytest.mark.usefixtures("guard")
def test_an_unexpected_exception_becomes_a_finding_without_control_characters(
    wording: Wording,
) -> None:
    """Its cause stays for the log."""
    with pytest.raises(Unjudged) as raised, one_pod():
        raise RecursionError("too deep\x1b[2J" + "x" * 1000)
    assert isinstance(raised.value.__cause__, RecursionError)
    text = str(raised.value)
    mentions(text, "RecursionError", "\\x1b[2J", "report it")
    assert len(text) < 350
    wording(text.replace("x" * 10, ""))


@pytest.mark.usefixtures("guard")
def test_what_is_raised_on_purpose_passes() -> None:
    with pytest.raises(InvalidPod), one_pod():
        raise InvalidPod("spec", "an object", None)


def test_in_tests_no_fault_is_hidden() -> None:
    """Not even where the product has the guard."""
    with pytest.raises(RecursionError), one_pod():
        raise RecursionError


@pytest.mark.usefixtures("guard")
def test_a_pod_that_a_fault_leaves_unjudged_is_in_its_report_and_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And the pod after it is judged."""
    judge_others = World.evaluate

    def evaluate(self: World, raw: dict[str, Any], namespace: str, **more: Any) -> Any:
        if raw["metadata"]["name"].startswith("broken"):
            raise KeyError("newer")
        return judge_others(self, raw, namespace, **more)

    monkeypatch.setattr(World, "evaluate", evaluate)
    judge = PodJudge(WORLD, None)
    with caplog.at_level(logging.ERROR):
        found = judge.judge([*(pod(name=f"broken-{at}") for at in range(5)), pod(name="sound")])
    assert [each.name for each in found][-1] == "sound"
    assert found[0].results[0].policy == UNREADABLE
    assert found[0].results[0].result == "error"
    mentions(found[0].results[0].message, "KeyError", "newer")
    assert found[-1].results[0].policy != UNREADABLE
    assert judge.faults == 5
    logged = [each for each in caplog.records if each.message == "pod not judged"]
    assert len(logged) == 3
    assert logged[0].exc_info is not None
