"""The API server's second call about a pod changes the decision as any call, and no count."""

from __future__ import annotations

import logging
from typing import Any

import jsonpatch
import pytest

from tests.admission.reviews import POOL, SPOT, Webhook, pod, policy_set, review
from tests.policy_tests.writing import policy
from webhook import names
from webhook.admission.second_calls import ANSWER_KEPT_SECONDS, Warned
from webhook.decision.decision import Decision
from webhook.decision.notice import Notice

Json = dict[str, Any]
KEY = b"key"
STAMP = names.PLACEMENT

SPOTLESS = policy("spotless", "defaults: {nodeSelector: {pool: spot}}")
STRICT = policy(
    "strict", "enforcement: Audit, priority: 5, requirements: {nodeSelector: {pool: steady}}"
)
RELEASED = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: anna}
spec:
  policies: [spot-tolerated]
  match: {namespaces: [ml-team]}
  until: "2099-12-31T00:00:00Z"
  reason: Anna looks for a leak.
"""


def told_no_node(sent: Json, _decision: Decision, _policies: object) -> str:
    """As the look at nodes reports it: a pod that has a selector is said to have come with it."""
    return "0 of 1 nodes" + (" for the pod as created" if sent["spec"].get("nodeSelector") else "")


def recorded(sent: Json) -> Json:
    """The pod as the API server sends it: with a record of the annotations that the author sent."""
    annotations: Json = {f"f:{key}": {} for key in sent["metadata"].get("annotations", {})}
    fields: Json = {"f:annotations": {".": {}, **annotations}} if annotations else {"f:labels": {}}
    record = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": fields}}
    return {**sent, "metadata": {**sent["metadata"], "managedFields": [record]}}


def answered(webhook: Webhook, sent: Json, **request: object) -> tuple[Json, Json]:
    """The response, and the pod with the patch, changed further as the Priority plugin does it."""
    sent = recorded(sent)
    answer = webhook.post(review(sent, **request))
    changed: Json = jsonpatch.apply_patch(sent, answer.patch)
    changed["spec"]["priority"] = 1000
    return answer.response, changed


def counts(webhook: Webhook) -> dict[tuple[str, tuple[str, ...]], float]:
    """Fairlead's counters, without those of requests, which count calls."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for metric in webhook.registry.collect()
        for sample in metric.samples
        if sample.name.startswith("fairlead_") and sample.name.endswith("_total")
        if "requests" not in sample.name
    }


def test_a_second_call_counts_nothing() -> None:
    """Neither decisions nor Audit, exceptions or pods without a node."""
    policies = policy_set(SPOT, SPOTLESS, STRICT, RELEASED)
    webhook = Webhook(policies, unplaceable=told_no_node)
    _, patched = answered(webhook, pod())
    once = counts(webhook)
    assert webhook.counted("unplaceable") == 1
    assert webhook.counted("exceptions_applied", exception="anna", policy="spot-tolerated") == 1
    again = webhook.post(review(patched, uid="another"))
    assert again.response["allowed"]
    assert counts(webhook) == once
    assert webhook.counted("admission_requests", result="unchanged", code="200") == 1


def test_a_second_call_does_not_warn_again_that_no_node_admits_the_pod() -> None:
    """The pod then has the policies' settings, so the warning would blame its author."""
    told: list[Notice] = []
    webhook = Webhook(policy_set(SPOTLESS), unplaceable=told_no_node, tell=told.append)
    first, patched = answered(webhook, pod())
    assert first["warnings"] == ["fairlead: pod p: 0 of 1 nodes"]
    assert "warnings" not in webhook.post(review(patched)).response


def test_a_second_call_warns_if_the_pod_had_a_node_before() -> None:
    """Another webhook may have changed the pod since. It is counted then."""
    nodes = ["", "0 of 1 nodes: cpu"]
    webhook = Webhook(policy_set(SPOT), unplaceable=lambda *_: nodes.pop(0))
    first, patched = answered(webhook, pod())
    assert "warnings" not in first
    assert len(webhook.post(review(patched)).response["warnings"]) == 1
    assert webhook.counted("unplaceable") == 1


def test_a_second_call_is_decided_as_any_call() -> None:
    """What another webhook changed is corrected, with the audit annotations of that decision."""
    webhook, other = Webhook(policy_set(SPOT)), Webhook(policy_set(SPOT))
    _, patched = answered(webhook, pod())
    patched["spec"]["tolerations"] = []
    assert webhook.post(review(patched)).body == other.post(review(patched)).body


def test_a_second_call_that_rejects_is_counted() -> None:
    webhook = Webhook(policy_set(POOL))
    _, patched = answered(webhook, pod())
    patched["spec"]["nodeSelector"] = {"pool": "other"}
    assert not webhook.post(review(patched)).response["allowed"]
    assert webhook.counted("policy_rejections", policy="pool-required") == 1
    assert webhook.counted("decisions", result="rejected", policy="pool-required") == 1


def test_the_log_marks_a_second_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="webhook.admission.handler")
    webhook = Webhook(policy_set(SPOT))
    webhook.post(review(answered(webhook, pod())[1]))
    first, second = [each.__dict__ for each in caplog.records if each.msg == "decided"]
    assert "second_call" not in first
    assert second["second_call"] is True
    assert second["policies"] == ("spot-tolerated",)


@pytest.mark.parametrize(
    "records",
    [
        None,
        [],
        ["text"],
        [{"fieldsV1": "text"}],
        [{"fieldsV1": {"f:metadata": []}}],
        [{"fieldsV1": {"f:metadata": {"f:annotations": None}}}],
        [{"fieldsV1": {}}, {"fieldsV1": {"f:metadata": {"f:annotations": {f"f:{STAMP}": {}}}}}],
    ],
    ids=["none", "empty", "no record", "no fields", "no metadata", "no annotations", "its author"],
)
def test_a_stamp_that_its_author_may_have_sent_hides_no_pod(records: object) -> None:
    """Also where the API server has no record of the fields, or one of a form that is unknown."""
    webhook = Webhook(policy_set(SPOT))
    _, patched = answered(webhook, pod())
    patched["metadata"]["managedFields"] = records
    webhook.post(review(patched))
    decided = [value for (name, _), value in counts(webhook).items() if "decisions" in name]
    assert sum(decided) == 2


def test_a_second_call_is_known_by_another_replica() -> None:
    """It is told by the pod, not by what the replica remembers."""
    _, patched = answered(Webhook(policy_set(SPOT)), pod())
    other = Webhook(policy_set(SPOT))
    other.post(review(patched))
    assert not [name for name, _ in counts(other) if "decisions" in name]


def test_pods_of_a_template_with_a_stamp_are_all_counted() -> None:
    """A template that was copied from a pod has the stamp that the answer would write."""
    webhook = Webhook(policy_set(SPOT))
    _, template = answered(Webhook(policy_set(SPOT)), pod())
    template["metadata"] = {**template["metadata"], "generateName": "p-"}
    del template["metadata"]["name"]
    for _ in range(4):
        webhook.post(review(recorded(template), name=""))
    assert sum(v for (name, _), v in counts(webhook).items() if "decisions" in name) == 4


def test_pods_of_one_controller_are_counted_each_once() -> None:
    """They have no names yet, and their calls may come in any order."""
    webhook = Webhook(policy_set(SPOT))
    sent = pod()
    sent["metadata"] = {"generateName": "p-", "labels": {names.RUN: "r"}}
    patched = [answered(webhook, sent, name="")[1] for _ in range(3)]
    for each in patched:
        webhook.post(review(each, name=""))
    assert webhook.counted("decisions", result="placed", policy="spot-tolerated") == 3
    assert webhook.counted("decisions", result="unchanged", policy="spot-tolerated") == 0


def test_a_warning_is_forgotten_after_its_time() -> None:
    """No request lasts longer."""
    warned = Warned()
    warned.remember(KEY, 0.0)
    warned.remember(KEY, ANSWER_KEPT_SECONDS)
    assert warned.has(KEY, ANSWER_KEPT_SECONDS + 1)
    assert not warned.has(b"other", ANSWER_KEPT_SECONDS + 1)
    assert not warned.has(KEY, 2 * ANSWER_KEPT_SECONDS + 1)
    assert len(warned) == 0


def test_the_memory_of_warnings_is_bounded() -> None:
    warned = Warned(2)
    for at in range(5):
        warned.remember(b"%d" % at, float(at))
    assert len(warned) == 2
    assert not warned.has(b"2", 5.0)
    assert warned.has(b"3", 5.0)
