"""What was counted of policies under Audit, by metrics, and its sum."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import generate_latest

from webhook import metric_names
from webhook.audited import (
    EXAMPLES,
    Counts,
    NoMetrics,
    Record,
    answer_of,
    records_of_metrics,
    tally,
)
from webhook.server.webhook_metrics import Metrics

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = "policy strict: requirements.labels[team]: must be 'y'; the pod has 'z'"


def exposed(metrics: Metrics) -> str:
    """What a scrape gets."""
    return generate_latest(metrics.registry).decode()


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
        metrics.count(metric_names.AUDITED_DECISIONS, "strict", "research", outcome)
    metrics.decided("placed", ["strict"])
    assert sorted(records_of_metrics(exposed(metrics))) == [
        Record("research", "strict", "rejects", 2),
        Record("research", "strict", "same", 1),
    ]


def test_only_what_is_rejected_has_a_reason() -> None:
    """Of two pods in one namespace one is changed, and one rejected."""
    rejected = Record("ml", "p", "rejects", 1, "Pod/bad", "must be 'od'")
    (row,) = tally([Record("ml", "p", "changes", 1, "Pod/changed"), rejected])
    assert (row.objects, row.rejected) == (["Pod/changed", "Pod/bad"], ["Pod/bad"])


def test_decisions_of_a_policy_that_is_gone_are_forgotten() -> None:
    """Else years of trials would pile up."""
    metrics = Metrics()
    for policy in ("gone", "there"):
        metrics.count(metric_names.AUDITED_DECISIONS, policy, "research", "same")
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
            Record("a", "strict", "same", 1),
            *(Record("b", "strict", "rejects", 1, f"Job/j{n}", REFUSED) for n in range(9)),
            Record("a", "strict", "rejects", 2),
        ]
    )
    assert [(row.namespace, row.policy) for row in found] == [
        ("b", "strict"),
        ("a", "strict"),
        ("a", "mild"),
    ]
    assert (found[0].rejects, found[0].reasons) == (9, [REFUSED])
    assert found[0].objects == [f"Job/j{n}" for n in range(EXAMPLES)]
    assert (found[0].counted, found[0].now) == (Counts(), Counts(rejects=9))
    assert found[1].counted == Counts(rejects=2, same=1)


COUNTED = [
    Record("ml", "p", "rejects", 3, "Job/a"),
    Record("dev", "p", "same", 37, "Job/b"),
    Record("dev", "q", "changes", 2, "Job/b"),
    Record("dev", "p", "rejects", 1),
]
PARTLY_NOW = ["late has 2 pods not judged", "p would change none of 1 pod (4 more not judged)"]
PARTLY = [
    Record("ml", "p", "same", 1, "Job/a"),
    Record("ml", "p", "not-judged", 4, "Job/a"),
    Record("ml", "late", "not-judged", 2, "Job/a"),
]


@pytest.mark.parametrize(
    ("records", "now", "parts"),
    [
        (
            COUNTED,
            True,
            [
                "if enforced now: p would reject 3 of 40 pods, q would change 2 of 2 pods",
                "in what was counted: p would reject 1 of 1 pod",
            ],
        ),
        (
            PARTLY,
            True,
            [
                f"if enforced now: {', '.join(PARTLY_NOW)}",
                "nothing was counted so far",
            ],
        ),
        (
            [],
            False,
            ["what would become of the cluster's pods is unknown", "nothing was counted so far"],
        ),
    ],
)
def test_the_answer_sums_up_each_policy(records: list[Record], now: bool, parts: list[str]) -> None:
    """Over all namespaces, those that reject most pods first; what is unknown is part of it."""
    answer = answer_of(tally(records), counted=True, now=now, asked=True)
    assert answer == f"Policies under Audit: {'; '.join(parts)}"


def test_what_was_not_read_is_part_of_the_answer() -> None:
    """Rather than a count of nothing."""
    answer = answer_of([], counted=False, now=True, asked=True)
    assert answer == (
        "Policies under Audit: no policy matches a pod now; what was counted so far is unknown"
    )
