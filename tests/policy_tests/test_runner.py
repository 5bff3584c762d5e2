"""Tests are run one by one: a fault in one is its own."""

from __future__ import annotations

import pytest

from tests.policy_tests.writing import HEAD, policy
from webhook.decision.engine import decide
from webhook.evaluation import one_pod
from webhook.policy.load import load
from webhook.policy_tests.load_tests import read
from webhook.policy_tests.runner import run_tests


def test_a_fault_about_one_pod_fails_that_test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fault; the others have their results."""

    def decide_unless_bad(arrival, *others):  # type: ignore[no-untyped-def]
        if arrival.pod["metadata"]["name"] == "bad":
            raise KeyError("spec")
        return decide(arrival, *others)

    monkeypatch.setattr("webhook.evaluation.world.decide", decide_unless_bad)
    monkeypatch.setattr(one_pod, "FAULTS", (Exception,))
    tests = "".join(
        f"- {{name: {name}, pod: {{metadata: {{name: {name}}}, labels: {{fairlead.dev/run: r}}}}, "
        "expect: {contains: {labels: {team: x}}}}\n"
        for name in ("bad", "good")
    )
    policies = load({"p.yaml": policy("p", "defaults: {labels: {team: x}}").encode()}).policies
    (document,) = read("t", f"{HEAD}tests:\n{tests}".encode()).sound()
    bad, good = run_tests(document, policies)
    assert good.passed
    assert bad.result is None
    assert [each.field for each in bad.failures] == ["pod"]
    assert "KeyError" in bad.failures[0].actual
