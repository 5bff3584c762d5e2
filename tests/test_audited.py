"""What was recorded of policies under Audit, from the audit log and from metrics, and its sum."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import generate_latest

from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.audit import outcomes
from webhook.audited import (
    EXAMPLES,
    Log,
    NoAnswer,
    NoMetrics,
    Record,
    records_of_metrics,
    tally,
)
from webhook.server.webhook_metrics import Metrics

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = "policy strict: requirements.labels[team]: must be 'y'; the pod has 'z'"
ENFORCED = "policy real: requirements.nodeSelector[pool]: policy strict requires otherwise"


def event(report: object, *, stage: str = "ResponseComplete", **about: str) -> bytes:
    """A line of the audit log, about a pod in the namespace `research`."""
    text = report if isinstance(report, str) else json.dumps(report)
    line: dict[str, Any] = {
        "kind": "Event",
        "stage": stage,
        "verb": "create",
        "objectRef": {"resource": "pods", "namespace": "research", **about},
        "annotations": {"pods-0.fairlead.dev/audit": text, "pods-0.fairlead.dev/set": "abc"},
    }
    return json.dumps(line).encode() + b"\n"


def records(lines: list[bytes]) -> list[Record]:
    """What a log of these lines tells."""
    log = Log()
    log.read(lines)
    return log.records


def created(
    *, verb: str = "create", annotations: Json | None = None, body: Json | None = None, **more: Any
) -> bytes:
    """A line about a pod, with annotations of others only, unless told otherwise."""
    line = json.loads(event({"policies": []})) | {"verb": verb, "annotations": annotations or {}}
    return json.dumps({**line, **more, **({"requestObject": body} if body else {})}).encode()


def exposed(metrics: Metrics) -> str:
    """What a scrape gets."""
    return generate_latest(metrics.registry).decode()


def test_each_policy_of_a_report_is_a_record() -> None:
    """A rejection is of the policy that its message begins with; the others changed nothing."""
    report = {"policies": ["strict", "mild"], "differs": True, "rejections": [REFUSED]}
    assert records([event(report, name="p")]) == [
        Record("research", "strict", "rejects", pod="p", reason=REFUSED),
        Record("research", "mild", "changes", pod="p"),
    ]


@pytest.mark.parametrize(
    ("rejections", "differs", "expected"),
    [
        ([], False, {"strict": "same", "mild": "same"}),
        ([], True, {"strict": "changes", "mild": "changes"}),
        ([REFUSED], True, {"strict": "rejects", "mild": "changes"}),
        ([ENFORCED], True, {"strict": "rejects", "mild": "rejects"}),
        # The pod is rejected as it is: nobody under Audit adds to that.
        ([ENFORCED], False, {"strict": "same", "mild": "same"}),
    ],
)
def test_what_a_policy_would_have_meant(
    rejections: list[str], differs: bool, expected: dict[str, str]
) -> None:
    """Where an enforced policy rejects because of those under Audit, all of them are meant."""
    found = outcomes(["strict", "mild"], rejections, differs=differs)
    assert {policy: outcome for policy, (outcome, _) in found.items()} == expected


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON, about pods-0.fairlead.dev/audit\n",
        b'["pods-0.fairlead.dev/audit"]\n',
        event({"policies": ["a"], "differs": True}, stage="RequestReceived"),
        event("not JSON"),
        event({"differs": True}),
        event(["a"]),
        event({"policies": ["a"], "rejections": 5}),
        event("[" * 100_000),
        b"[" * 100_000 + b'".fairlead.dev/audit"\n',
        b'{"stage": "ResponseComplete", "annotations": ["pods-0.fairlead.dev/audit"]}\n',
        b'{"stage": "ResponseComplete", "annotations": null, "x": ".fairlead.dev/audit"}\n',
        b"\n",
    ],
)
def test_a_line_with_another_event_is_ignored(line: bytes) -> None:
    """A log that is cut, or another program's, is no reason to lose the rest."""
    good = event({"policies": ["a"], "differs": False})
    assert records([line, good]) == [Record("research", "a", "same")]


def test_an_event_about_nothing_is_counted_nowhere_in_particular() -> None:
    """It has the report all the same."""
    line = json.loads(event({"policies": ["a"], "differs": False})) | {"objectRef": ["pods"]}
    assert records([json.dumps(line).encode()]) == [Record("", "a", "same")]


MARKED = {"metadata": {"labels": {names.RUN: "r"}}}
UNMARKED = {"metadata": {"labels": {"app": "web"}}}
ELSEWHERE = created(verb="list")
BEGUN = created(stage="RequestReceived")
FAILED_OPEN = {
    "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "pods-0.fairlead.dev"
}
DECIDED = event({"policies": ["a"], "differs": False})


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ([], ["no audit event", "nothing"]),
        ([b"# Fairlead\n", b"Places runs.\n"], ["no audit event", "'# Fairlead'", "audit log"]),
        ([b"\x1f\x8b\x08\x00"], ["no audit event", "audit log"]),
        ([ELSEWHERE], ["1 audit events", "creation of a pod", "level: Metadata"]),
        (
            [created(objectRef={"resource": "pods", "subresource": "binding"})],
            ["creation of a pod"],
        ),
        ([created(responseStatus={"code": 403})], ["creation of a pod"]),
        ([BEGUN], ["1 creation ", "ResponseComplete", "omitStages"]),
        ([created(body=MARKED)] * 2, ["2 creations", "2 of them", "annotation", "Metadata"]),
        ([created(annotations=FAILED_OPEN)], ["1 creation ", "1 of them", "fairlead doctor"]),
    ],
    ids=[
        *("empty", "another file", "compressed", "no creation", "a binding", "refused by others"),
        *("no last stage", "annotations dropped", "failed open"),
    ],
)
def test_a_log_that_cannot_tell_is_an_error(
    lines: list[bytes], facts: list[str], wording: Wording
) -> None:
    """Never "nothing was matched": of the pods in there nobody knows what was decided."""
    with pytest.raises(NoAnswer) as refused:
        Log().read(lines)
    mentions(str(refused.value), *facts)
    wording(str(refused.value))


@pytest.mark.parametrize("body", [UNMARKED, None], ids=["of no run", "level Metadata"])
def test_a_log_without_a_decision_is_an_error(body: Json | None, wording: Wording) -> None:
    """Pods of no run are none of Fairlead's; but a log of them alone tells nothing of policies."""
    log = Log()
    log.read([created(body=body)])
    with pytest.raises(NoAnswer) as refused:
        log.check()
    mentions(str(refused.value), "1 creation of pods", "none of them", "fairlead doctor")
    wording(str(refused.value))
    log.read([DECIDED])
    log.check()


def marked(name: str, namespace: str = "research", **labels: str) -> bytes:
    """The creation of a pod with these labels, without an answer."""
    about = {"resource": "pods", "namespace": namespace, "name": name}
    return created(body={"metadata": {"labels": labels}}, objectRef=about)


def test_pods_of_runs_without_an_answer_are_counted_and_some_named() -> None:
    """The webhook may have been disabled, or its configuration away, for a part of the log."""
    own = [marked(f"p-{at}", **{names.RUN: "r"}) for at in range(5)]
    log = Log()
    log.read([DECIDED, *own, marked("other", app="web")])
    assert log.unanswered.count == 5
    assert log.unanswered.names == ["research/p-0", "research/p-1", "research/p-2"]


def test_pods_that_are_not_sent_are_not_missing() -> None:
    """In a namespace that is left out, or of a system whose source is not installed."""
    log = Log()
    katib = {"katib.kubeflow.org/experiment": "x", "training.kubeflow.org/job-name": "j"}
    log.read([DECIDED, marked("p", "kube-system", **{names.RUN: "r"}), marked("q", **katib)])
    assert log.passed_by
    assert log.unanswered.count == 0
    # One of them was decided on, so such pods are sent.
    ((entries, _),) = log.passed_by.items()
    log.read([created(annotations={f"{min(entries)}/set": "abc"})])
    assert log.unanswered.names == ["research/q"]


def test_pods_are_counted_by_who_decided_on_them() -> None:
    """Of several logs together, and in an EventList too."""
    several = {"kind": "EventList", "items": [json.loads(DECIDED), json.loads(DECIDED)]}
    log = Log()
    log.read([DECIDED, created(annotations=FAILED_OPEN), created(body=UNMARKED), BEGUN])
    log.read([json.dumps(several).encode()])
    assert (log.created, log.decided, log.failed_open) == (5, 3, 1)
    assert log.records == [Record("research", "a", "same")] * 3


def test_metrics_of_another_program_are_an_error() -> None:
    """A replica tells of audited decisions from its beginning, be it of none."""
    assert list(records_of_metrics(exposed(Metrics()))) == []
    for text in ("", "# TYPE up gauge\nup 1\n"):
        with pytest.raises(NoMetrics, match="fairlead_audited_decisions"):
            list(records_of_metrics(text))


def test_what_the_replicas_counted_is_read_from_their_metrics() -> None:
    """As the webhook writes them; whatever else is in them is passed."""
    metrics = Metrics()
    for outcome in ("rejects", "rejects", "same"):
        metrics.audited("strict", "research", outcome)
    metrics.decided("placed", ["strict"])
    assert sorted(records_of_metrics(exposed(metrics))) == [
        Record("research", "strict", "rejects", 2),
        Record("research", "strict", "same", 1),
    ]


def test_decisions_of_a_policy_that_is_gone_are_forgotten() -> None:
    """Else years of trials would pile up."""
    metrics = Metrics()
    for policy in ("gone", "there"):
        metrics.audited(policy, "research", "same")
    metrics.policies_loaded("hash", ["there"], NOW)
    records = list(records_of_metrics(exposed(metrics)))
    assert records == [Record("research", "there", "same", 1)]


@pytest.mark.parametrize("text", ["<html>", 'a{b="c} 1\n'])
def test_a_text_without_metrics_is_an_error(text: str) -> None:
    """And no zero."""
    with pytest.raises(NoMetrics):
        list(records_of_metrics(text))


@pytest.mark.parametrize(
    "sample",
    [
        '{policy="a",namespace="b",outcome="same"} NaN',
        '{policy="a",namespace="b",outcome="same"} +Inf',
        '{policy="a",namespace="b"} 1',
        '{policy="a",outcome="same"} 1',
        '{policy="a",namespace="b",outcome="later"} 1',
    ],
)
def test_numbers_of_another_kind_are_an_error(sample: str) -> None:
    """That names them: who asked sees what to look at."""
    with pytest.raises(NoMetrics, match="of another version"):
        list(records_of_metrics(f"fairlead_audited_decisions_total{sample}\n"))


def test_rows_are_summed_by_namespace_and_policy_the_worst_first() -> None:
    """With a few different pods and reasons of each."""
    found = tally(
        [
            Record("a", "mild", "changes", 5),
            Record("a", "strict", "same"),
            *(Record("b", "strict", "rejects", pod=f"p{n}", reason=REFUSED) for n in range(9)),
            Record("a", "strict", "rejects", 2),
        ]
    )
    assert [(row.namespace, row.policy) for row in found] == [
        ("b", "strict"),
        ("a", "strict"),
        ("a", "mild"),
    ]
    assert (found[0].rejects, found[0].reasons) == (9, [REFUSED])
    assert found[0].pods == [f"p{n}" for n in range(EXAMPLES)]
    assert (found[1].rejects, found[1].same, found[1].matched) == (2, 1, 3)
