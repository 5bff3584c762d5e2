"""The app: what comes back for a review, and for what is none."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jsonpatch
import pytest
from starlette.types import Message

from tests.admission.reviews import (
    POOL,
    SECRET,
    SPOT,
    Asked,
    Json,
    Known,
    Webhook,
    call,
    pod,
    policy_set,
    review,
)
from tests.policy_tests.writing import policy
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.app import MAX_BODY_BYTES, Unread, read_body
from webhook.admission.review import MOST_VALUES, PodRequest
from webhook.errors import NotSynced
from webhook.policy.policy_set import PolicySet
from webhook.server.logs import JsonFormatter

SPOT_TOLERATION = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}


@contextmanager
def logged(level: int) -> Iterator[list[str]]:
    """The lines that the webhook writes at this level and above, as they would be on stderr."""
    lines: list[str] = []
    handler = logging.Handler()
    formatter = JsonFormatter()
    handler.emit = lambda record: lines.append(formatter.format(record))  # type: ignore[method-assign]
    logger = logging.getLogger("webhook.admission")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def test_a_pod_of_a_run_gets_a_patch_that_applies() -> None:
    """The answer carries the request's uid, and the patch places and stamps the pod."""
    policies = policy_set(SPOT)
    answer = Webhook(policies).post(review())
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert (answer.response["uid"], answer.response["allowed"]) == ("0df28fbd", True)
    placed = jsonpatch.apply_patch(pod(), answer.patch)
    assert placed["spec"]["tolerations"] == [SPOT_TOLERATION]
    stamp = json.loads(placed["metadata"]["annotations"][names.PLACEMENT])
    assert stamp == {
        "policies": {"spot-tolerated": ["tolerations[spot]"]},
        "set": policies.hash[:16],
    }
    assert answer.response["auditAnnotations"] == {
        "result": "placed",
        "set": policies.hash[:16],
        "policies": "spot-tolerated",
    }


def test_a_pod_of_no_run_gets_an_empty_answer() -> None:
    """No patch, no warning, no annotation in the audit log: it is none of our business."""
    answer = Webhook(policy_set(SPOT)).post(review(pod(labels={"app": "x"})))
    assert answer.response == {"uid": "0df28fbd", "allowed": True}


def test_a_rejection_is_an_answer_that_names_policy_and_field() -> None:
    """HTTP 200, for it is a decision and no failure."""
    webhook = Webhook(policy_set(POOL))
    answer = webhook.post(review(pod(nodeSelector={"pool": "other"})))
    assert answer.status == 200
    assert not answer.response["allowed"]
    assert answer.response["status"]["code"] == 403
    message = answer.response["status"]["message"]
    assert "pool-required" in message
    assert "nodeSelector" in message
    assert "patch" not in answer.response
    assert answer.response["auditAnnotations"]["result"] == "rejected"
    assert webhook.counted("policy_rejections", policy="pool-required") == 1


def test_a_pod_of_the_daemon_set_controller_is_stamped_and_left_alone() -> None:
    """The reason is in the stamp and in the audit log. The owner alone, forged, is not enough."""
    owned = pod()
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    ]
    webhook = Webhook(policy_set(SPOT))
    answer = webhook.post(
        review(owned, userInfo={"username": names.DAEMON_SET_CONTROLLER}),
    )
    assert [operation["path"] for operation in answer.patch] == ["/metadata/annotations"]
    assert "DaemonSet" in answer.response["auditAnnotations"]["reason"]
    forged = webhook.post(review(owned))
    assert forged.response["auditAnnotations"]["result"] == "placed"


def test_a_dry_run_is_decided_as_any_other() -> None:
    """There are no side effects that could be left out."""
    webhook = Webhook(policy_set(SPOT))
    assert webhook.post(review(dryRun=True)).body == webhook.post(review()).body


def test_a_dry_run_about_a_decided_pod_is_answered_without_a_decision() -> None:
    """Only with both: the API server says that nothing is stored, and the request has the mark."""
    webhook = Webhook(policy_set(POOL))
    other, mark = pod(nodeSelector={"pool": "other"}), {"fieldManager": names.AS_DECIDED}
    asked = webhook.post(review(other, dryRun=True, options=mark))
    assert asked.response == {
        "uid": "0df28fbd",
        "allowed": True,
        "warnings": [f"fairlead: {names.LEFT_AS_DECIDED}"],
    }
    assert not webhook.counted("fairlead_decisions_total")
    for request in (
        {"dryRun": False, "options": mark},
        {"options": mark},
        {"dryRun": True},
        {"dryRun": "true", "options": mark},
        {"dryRun": True, "options": {"fieldManager": "kubectl"}},
        {"dryRun": True, "options": names.AS_DECIDED},
    ):
        assert not webhook.post(review(other, **request)).response["allowed"]
    other["metadata"]["managedFields"] = [{"manager": names.AS_DECIDED}]
    other["metadata"]["annotations"] = {names.PLACEMENT: names.AS_DECIDED}
    assert not webhook.post(review(other, dryRun=True)).response["allowed"]


def test_the_default_priority_class_counts_as_unset() -> None:
    """The cluster's is nobody's word; one that the pod's author chose is."""
    policies = policy_set(policy("important", "defaults: {priorityClassName: batch}"))
    webhook = Webhook(policies, default_priority_class=lambda: "normal")
    for own, becomes in (("normal", "batch"), ("mine", "mine")):
        sent = pod(priorityClassName=own, priority=7)
        placed = jsonpatch.apply_patch(sent, webhook.post(review(sent)).patch)
        assert placed["spec"]["priorityClassName"] == becomes
        assert ("priority" in placed["spec"]) == (becomes == "mine")


def test_a_namespace_that_is_not_known_yet_is_asked_for() -> None:
    """And the policies that its labels select apply."""
    policies = policy_set(
        policy(
            "batch",
            "match: {namespaceSelector: {matchLabels: {tier: batch}}}, "
            "defaults: {nodeSelector: {pool: batch}}",
        )
    )
    webhook = Webhook(policies, namespaces=Asked({"ml-team": {"tier": "batch"}}))
    placed = jsonpatch.apply_patch(pod(), webhook.post(review()).patch)
    assert placed["spec"]["nodeSelector"] == {"pool": "batch"}


def test_a_pod_that_cannot_have_been_sent_means_that_the_namespace_changed() -> None:
    """The API server sends marked pods and those of marked namespaces: we look again, or say so."""
    plain = review(pod(labels={"app": "x"}))
    marked = {"ml-team": {names.PLACE: names.PLACE_ALL}}
    old: dict[str, dict[str, str]] = {"ml-team": {}}
    placed = Webhook(policy_set(SPOT), namespaces=Known(old, now=marked)).post(plain)
    assert placed.patch
    assert names.PLACEMENT in str(placed.patch)
    # One that is marked itself needs no second look.
    assert Webhook(policy_set(SPOT), namespaces=Known(old, now={})).post(review()).patch
    answer = Webhook(policy_set(SPOT), namespaces=Known(old, now={})).post(plain)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")

    class Shared(Known):
        """An answer that another pod got before the mark, and the next one."""

        async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:
            return (marked if fresh else old)[name]

    for known in (old, {}):
        assert Webhook(policy_set(SPOT), namespaces=Shared(known)).post(plain).patch


@pytest.mark.parametrize("missing", ["policies", "namespace", "priority class"])
def test_what_is_not_known_is_never_guessed(missing: str) -> None:
    """503, with the reason as text, and Retry-After, upon which the API server tries again."""

    def not_listed() -> str | None:
        raise NotSynced("the default PriorityClass is not known yet")

    webhook = Webhook(
        None if missing == "policies" else policy_set(SPOT),
        namespaces=Known({}) if missing == "namespace" else None,
        default_priority_class=not_listed if missing == "priority class" else lambda: None,
    )
    answer = webhook.post(review())
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"].startswith("text/plain")
    says = {"policies": "no policies", "namespace": "ml-team", "priority class": "PriorityClass"}
    assert says[missing] in answer.body.decode()
    assert webhook.counted("admission_requests", result="not-synced", code="503") == 1


def test_a_decision_goes_by_one_policy_set() -> None:
    """The one that serves when everything else is known, asked for once."""
    sets = [policy_set(SPOT), policy_set(SPOT, POOL)]
    asked: list[PolicySet] = []

    def newest() -> PolicySet:
        asked.append(sets[len(asked) % 2])
        return asked[-1]

    webhook = Webhook(newest, namespaces=Asked({"ml-team": {}}))
    answer = webhook.post(review())
    assert len(asked) == 1
    assert answer.response["auditAnnotations"]["set"] == sets[0].hash[:16]


def test_a_body_that_is_not_a_review_of_a_pod_gets_400_with_the_reason() -> None:
    """And counts as invalid, not as an error of ours."""
    webhook = Webhook(policy_set(SPOT))
    answer = webhook.post(review() | {"apiVersion": "admission.k8s.io/v1beta1"})
    assert answer.status == 400
    assert "v1beta1" in answer.body.decode()
    assert webhook.counted("admission_requests", result="invalid", code="400") == 1
    assert webhook.counted("engine_errors") == 0


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (review(pod(n=2**64)), "over 64 bits"),
        (json.dumps(review(pod(n="?"))).replace('"?"', "[" * 1_100 + "]" * 1_100), "not JSON"),
        (review({"metadata": {}}), "spec: want an object"),
        (review(pod(tolerations="all")), "spec.tolerations: want a list"),
        (review(pod(nodeSelector={"a": 1})), "spec.nodeSelector[a]"),
    ],
    ids=["huge integer", "deep", "no spec", "tolerations", "selector"],
)
def test_a_pod_that_cannot_be_read_is_refused_and_not_let_through(
    made: Json | str, says: str
) -> None:
    """Where failures are ignored, another status would let it through. It counts as invalid."""
    webhook = Webhook(policy_set(SPOT))
    answer = webhook.post((made if isinstance(made, str) else json.dumps(made)).encode())
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert (response["uid"], response["allowed"]) == ("0df28fbd", False)
    assert says in response["status"]["message"]
    assert webhook.counted("admission_requests", result="invalid", code="200") == 1
    assert webhook.counted("engine_errors") == 0


def test_an_exception_is_a_500_counted_and_logged_with_the_uid() -> None:
    """The API server's failurePolicy decides then: it is never an answer that admits the pod."""

    class Broken(PolicySet):
        def matching(self, _subject: object) -> tuple[int, ...]:
            raise ZeroDivisionError

    webhook = Webhook(Broken([], {}, "0" * 64))
    with logged(logging.ERROR) as lines:
        answer = webhook.post(review())
    assert answer.status == 500
    assert "0df28fbd" in answer.body.decode()
    assert webhook.counted("engine_errors") == 1
    assert webhook.counted("admission_requests", result="error", code="500") == 1
    (line,) = map(json.loads, lines)
    assert line["uid"] == "0df28fbd"
    assert "ZeroDivisionError" in line["exception"]
    assert SECRET not in lines[0]


@pytest.mark.parametrize(
    "parts", [[b"x" * (MAX_BODY_BYTES + 1)], [b"x" * MAX_BODY_BYTES, b"x"]], ids=["whole", "parts"]
)
def test_a_body_over_the_cap_is_a_413(parts: list[bytes]) -> None:
    """The reason says what the cap is."""
    webhook = Webhook(policy_set(SPOT))
    answer = call(webhook.app, "POST", "/mutate", parts)
    assert answer is not None
    assert answer.status == 413
    assert str(MAX_BODY_BYTES) in answer.body.decode()
    assert webhook.counted("admission_requests", result="too-large", code="413") == 1


@pytest.mark.parametrize("length", [True, False])
def test_a_review_over_the_cap_is_refused_and_not_let_through(length: bool) -> None:
    """Where failures are ignored, a status like 413 lets the pod through as its author wrote it."""
    webhook = Webhook(policy_set(SPOT))
    large = json.dumps(review(pod(junk="x" * MAX_BODY_BYTES))).encode()
    headers = {"content-type": "application/json"}
    if length:
        headers["content-length"] = str(len(large))
    answer = call(webhook.app, "POST", "/mutate", [large[:5000], large[5000:]], headers)
    assert answer is not None
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert (response["uid"], response["allowed"]) == ("0df28fbd", False)
    mentions(response["status"]["message"], str(MAX_BODY_BYTES), "smaller")
    assert webhook.counted("admission_requests", result="too-large", code="200") == 1


def test_a_pod_as_large_as_any_is_decided() -> None:
    """The API server takes requests of 3 MiB, and its JSON writes each < as six bytes."""
    large = pod()
    large["spec"]["containers"][0]["args"] = ["x" * 2_500_000 + "<" * 500_000]
    text = json.dumps(review(large)).replace("<", "\\u003c").encode()
    assert 3 * 1024 * 1024 < len(text) < MAX_BODY_BYTES
    assert Webhook(policy_set(SPOT)).post(text).response["allowed"]


def test_a_caller_that_went_away_gets_no_answer() -> None:
    """Nothing is sent, and nothing is counted as answered."""
    webhook = Webhook(policy_set(SPOT))
    assert call(webhook.app, "POST", "/mutate", [b"{", None]) is None


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.kubernetes+json", 200),
        ("", 200),
        ("application/yaml", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=json", 415),
    ],
)
def test_another_content_type_than_json_is_a_415(content_type: str, status: int) -> None:
    webhook = Webhook(policy_set(SPOT))
    assert webhook.post(review(), {"content-type": content_type}).status == status
    assert webhook.post(review(), {}).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/mutate", 405),
        ("POST", "/mutate/x", 404),
        ("GET", "/metrics", 404),
    ],
)
def test_every_other_method_or_path_is_rejected(method: str, path: str, status: int) -> None:
    answer = call(Webhook(policy_set(SPOT)).app, method, path)
    assert answer is not None
    assert answer.status == status
    if status == 405:
        assert answer.headers["allow"] == "POST"


def test_decisions_are_counted_by_result_and_policy() -> None:
    """Requests by result and status, decisions under each policy that took part."""
    webhook = Webhook(policy_set(SPOT))
    for sent in (pod(), pod(), pod(labels={})):
        webhook.post(review(sent))
    assert webhook.counted("admission_requests", result="placed", code="200") == 2
    assert webhook.counted("decisions", result="placed", policy="spot-tolerated") == 2
    assert webhook.counted("decisions", result="not-a-run", policy="") == 1
    seconds = webhook.registry.get_sample_value("fairlead_admission_duration_seconds_count")
    assert seconds == 3


AUDIT = policy("later", "enforcement: Audit, requirements: {nodeSelector: {pool: experiments}}")


@pytest.mark.parametrize(
    ("selector", "result"),
    [
        ({}, "audit-changes"),
        ({"pool": "other"}, "audit-rejects"),
        ({"pool": "experiments"}, "audit-same"),
    ],
)
def test_a_policy_under_audit_is_recorded_and_changes_nothing(
    selector: dict[str, str], result: str
) -> None:
    """In the log at info where it would have made a difference, in the audit log, and counted."""
    sent = pod(nodeSelector=selector)
    enforced_only, audited = Webhook(policy_set(SPOT)), Webhook(policy_set(SPOT, AUDIT))
    with logged(logging.INFO) as lines:
        answer = audited.post(review(sent))
    changed = jsonpatch.apply_patch(sent, answer.patch)
    expected = jsonpatch.apply_patch(sent, enforced_only.post(review(sent)).patch)
    assert changed["spec"] == expected["spec"]
    report = json.loads(answer.response["auditAnnotations"]["audit"])
    assert report["policies"] == ["later"]
    assert report["differs"] == (result != "audit-same")
    assert audited.counted("decisions", result=result, policy="later") == 1
    assert len(lines) == (0 if result == "audit-same" else 1)
    assert all(json.loads(line)["audit"] == report for line in lines)


GONE = policy("gone", "enforcement: Audit, overrides: {priorityClassName: gone}")
SYSCTLS = policy(
    "sysctls",
    "enforcement: Audit, defaults: {securityContext: {sysctls: "
    "[{name: kernel.shm_rmid_forced, value: '1'}]}}",
)


@pytest.mark.parametrize(
    ("classes", "outcomes"),
    [
        ({"PriorityClass": {}, "RuntimeClass": {}}, {"gone": "rejects", "sysctls": "rejects"}),
        ({}, {"gone": "not-judged", "sysctls": "rejects"}),
    ],
)
def test_what_the_api_server_would_refuse_is_recorded_as_a_rejection(
    classes: dict[str, Any], outcomes: dict[str, str]
) -> None:
    """As far as the replica knows what is in the cluster: else it is not judged."""
    webhook = Webhook(policy_set(GONE, SYSCTLS), classes=lambda: classes)
    answer = webhook.post(review(pod(hostIPC=True)))
    assert answer.response["allowed"]
    report = json.loads(answer.response["auditAnnotations"]["audit"])
    assert {name: report["outcomes"][name] for name in outcomes} == outcomes
    for name, outcome in outcomes.items():
        labels = {"policy": name, "namespace": "ml-team", "outcome": outcome}
        assert webhook.counted("audited_decisions", **labels) == 1


def test_a_long_pod_is_not_evaluated_with_policies_under_audit_enforced() -> None:
    """Its author could make every pod of the cluster wait."""
    webhook = Webhook(policy_set(GONE, AUDIT))
    sent = pod(nodeSelector={"pool": "other"})
    sent["metadata"]["annotations"] = {"long": "x" * 40_000}
    report = json.loads(webhook.post(review(sent)).response["auditAnnotations"]["audit"])
    assert report["outcomes"] == {"gone": "not-judged", "later": "rejects", "*": "rejects"}
    assert "more than 32768 bytes" in report["unknown"]["gone"]


def test_a_fault_in_the_audit_does_not_stop_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged and counted, and the policy counts as not judged."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("webhook.evaluation.audits.judge", broken)
    webhook = Webhook(policy_set(SPOT, GONE))
    with logged(logging.ERROR) as lines:
        answer = webhook.post(review())
    assert answer.patch
    assert len(lines) == 1
    assert webhook.counted("engine_errors") == 1
    report = json.loads(answer.response["auditAnnotations"]["audit"])
    assert report["outcomes"] == {"gone": "not-judged"}


def one_line(level: int, request: Json) -> dict[str, Any]:
    with logged(level) as lines:
        Webhook(policy_set(SPOT, POOL)).post(request)
    (line,) = lines
    assert SECRET not in line
    decoded: dict[str, Any] = json.loads(line)
    return decoded


def test_a_decision_is_one_line_at_debug_without_the_pod() -> None:
    """It says which pod, what was decided, by which policies, and how long it took."""
    nameless = pod()
    nameless["metadata"] = {"generateName": "p-", "labels": {names.RUN: "r"}}
    line = one_line(logging.DEBUG, review(nameless, name="", dryRun=True))
    expected = {
        "level": "debug",
        "message": "decided",
        "uid": "0df28fbd",
        "namespace": "ml-team",
        "pod": "p-",
        "result": "placed",
        "policies": ["pool-required", "spot-tolerated"],
        "dry_run": True,
    }
    assert {key: line[key] for key in expected} == expected
    assert line["ms"] >= 0


def test_a_rejection_is_logged_at_info_with_its_reason() -> None:
    """Whoever runs the webhook learns of it without asking the author."""
    line = one_line(logging.INFO, review(pod(nodeSelector={"pool": "other"})))
    assert (line["level"], line["result"]) == ("info", "rejected")
    assert "pool-required" in line["reason"]


def test_a_decision_that_places_is_silent_at_info() -> None:
    """Thousands of pods an hour would fill a disk."""
    with logged(logging.INFO) as lines:
        Webhook(policy_set(SPOT)).post(review())
    assert lines == []


PINNED = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: pinned}
spec:
  overrides:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]
"""


def deep_pod() -> Json:
    """A pod with something in its required affinity that can be read, and not be written."""
    deep: Any = "end"
    for _ in range(300):
        deep = [deep]
    term = {"matchExpressions": [{"key": "a", "operator": "Exists", "unknown": deep}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod(affinity={"nodeAffinity": required})


def test_a_pod_that_is_nested_too_deeply_is_refused() -> None:
    """What is nested deeper than it can be written again cannot be patched."""
    answer = Webhook(policy_set(PINNED)).post(json.dumps(review(deep_pod())).encode())
    response = json.loads(answer.body)["response"]
    assert (answer.status, response["allowed"]) == (200, False)
    assert "nested too deeply" in response["status"]["message"]


def test_a_too_deep_patch_under_audit_is_reported_without_the_patch() -> None:
    """It changes nothing of the pod, so it is no reason to refuse it."""
    audited = policy_set(PINNED.replace("spec:", "spec:\n  enforcement: Audit", 1))
    answer = Webhook(audited).post(json.dumps(review(deep_pod())).encode())
    assert answer.status == 200
    told = json.loads(answer.response["auditAnnotations"]["audit"])
    assert told == {
        "policies": ["pinned"],
        "differs": True,
        "outcomes": {"pinned": "changes"},
        "patch": None,
    }


def test_an_audited_patch_is_recorded_at_no_author_s_length() -> None:
    term = {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"} for n in range(600)]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    audited = policy_set(PINNED.replace("spec:", "spec:\n  enforcement: Audit", 1))
    with logged(logging.INFO) as lines:
        answer = Webhook(audited).post(review(pod(affinity={"nodeAffinity": required})))
    report = json.loads(answer.response["auditAnnotations"]["audit"])
    assert report == {
        "policies": ["pinned"],
        "differs": True,
        "outcomes": {"pinned": "changes"},
        "patch": None,
    }
    assert len(lines) == 1
    assert all(len(line) < 2000 for line in lines)


def test_a_reason_never_repeats_a_name_as_long_as_a_body() -> None:
    """No namespace has such a name."""
    answer = Webhook(policy_set(SPOT)).post(review(namespace="n" * 100_000))
    assert answer.status == 400
    assert b"request.namespace has 100000 characters" in answer.body
    assert len(answer.body) < 1100


EXCEPTION = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: anna}
spec:
  policies: ["*"]
  match: {namespaces: [ml-team]}
  until: "%s"
  reason: Anna looks for a leak.
"""


def test_what_an_exception_sets_aside_is_stamped_logged_counted_and_audited() -> None:
    """So that whoever looks for pods that passed finds them in each place."""
    policies = policy_set(SPOT, EXCEPTION % "2099-12-31T00:00:00Z")
    webhook = Webhook(policies)
    with logged(logging.INFO) as lines:
        answer = webhook.post(review())
    told = {"anna": ["spot-tolerated"]}
    placed = jsonpatch.apply_patch(pod(), answer.patch)
    stamp = json.loads(placed["metadata"]["annotations"][names.PLACEMENT])
    assert stamp == {"exceptions": told, "policies": {}, "set": policies.hash[:16]}
    assert json.loads(answer.response["auditAnnotations"]["exceptions"]) == told
    (line,) = lines
    assert json.loads(line)["exceptions"] == told
    assert webhook.counted("exceptions_applied", exception="anna", policy="spot-tolerated") == 1


def test_an_exception_that_has_ended_is_told_to_the_pods_author_and_does_nothing(
    wording: Wording,
) -> None:
    """No stamp, no line, no count."""
    webhook = Webhook(policy_set(SPOT, EXCEPTION % "2026-01-01T00:00:00Z"))
    with logged(logging.INFO) as lines:
        answer = webhook.post(review())
    (warning,) = answer.response["warnings"]
    mentions(
        warning, "fairlead: pod p: exception anna ended", "2026-01-01T00:00:00Z", "spot-tolerated"
    )
    wording(warning)
    assert "exceptions" not in answer.response["auditAnnotations"]
    assert not lines
    assert webhook.counted("exceptions_applied", exception="anna", policy="spot-tolerated") == 0


def test_a_review_that_waits_is_not_held_read() -> None:
    """Read, it takes many times its bytes, and many may wait for a namespace that is not known."""
    held: list[int] = []

    class Asking(Asked):
        async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:
            gc.collect()
            held.append(sum(isinstance(each, PodRequest) for each in gc.get_objects()))
            return await super().live(name, fresh=fresh)

    answer = Webhook(policy_set(SPOT), namespaces=Asking({"ml-team": {}})).post(review())
    assert answer.response["allowed"] is True
    assert answer.patch
    assert held == [0]


def test_a_review_with_too_many_values_is_refused_and_not_let_through(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A 400 would be an error, and the pod let through where errors of the webhook are ignored."""
    large = review(obj=pod(junk=[{}] * MOST_VALUES))
    webhook = Webhook(policy_set(SPOT))
    answer = webhook.post(large)
    assert answer.status == 200
    response = json.loads(answer.body)["response"]
    assert (response["uid"], response["allowed"]) == (large["request"]["uid"], False)
    assert f"over {MOST_VALUES} JSON values" in response["status"]["message"]
    # Nobody but the API server has to be answered in its own words.
    turned = {key: large[key] for key in reversed(large)}
    assert webhook.post(turned).status == 400
    assert [each.message for each in caplog.records] == ["invalid review"] * 2


async def read_parts(parts: list[bytes], length: bytes = b"") -> bytes:
    """The body that comes in these parts with at most 10 bytes; those that are read are taken."""

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    headers = [(b"content-length", length)] if length else []
    return await read_body({"headers": headers}, receive, most=10)


@pytest.mark.parametrize("parts", [[b"0123456789"], [b"01234", b"", b"56789"], [b""]])
async def test_a_body_of_the_limit_is_read_whole(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert (await read_parts(parts), parts) == (whole, [])


@pytest.mark.parametrize(
    ("parts", "length"),
    [
        ([b"01234", b"56789", b"a", b"b", b"c"], b""),
        # The API server writes first what an answer needs.
        ([b"x" * 400, b"y" * 400, b"b", b"c"], b"801"),
    ],
    ids=["parts", "a length"],
)
async def test_no_part_past_the_limit_is_read(parts: list[bytes], length: bytes) -> None:
    with pytest.raises(Unread):
        await read_parts(parts, length)
    assert parts == [b"b", b"c"]


async def test_a_caller_that_disconnects_is_distinguished_from_a_slow_one() -> None:
    async def leave() -> Message:
        return {"type": "http.disconnect"}

    async def stall() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    with pytest.raises(Unread) as gone:
        await read_body({"headers": []}, leave)
    with pytest.raises(Unread) as slow:
        await read_body({"headers": []}, stall, seconds=0.01)
    assert gone.value.reply is None
    assert slow.value.reply
    assert slow.value.reply.status == 408
