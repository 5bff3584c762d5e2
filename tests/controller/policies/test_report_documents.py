"""Policy reports as documents: bounded, ordered, and stable over passes."""

from __future__ import annotations

import json

from webhook.controller.policies.pod_results import NO_NODE, JudgedPod, PodResult
from webhook.controller.policies.report_documents import (
    RESULTS_PER_REPORT,
    SHORTENED,
    differs,
    report,
)

LOST = PodResult(NO_NODE, "nodes", "fail", "high", "0 of 3 nodes")
AUDITED = PodResult("strict", "audit", "warn", "low", "it would change the placement: a")
OWNER = {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "1"}


def pods(count: int, *results: PodResult) -> list[JudgedPod]:
    """Pods of one namespace with equal results."""
    return [JudgedPod("research", f"p-{at:05}", f"uid-{at}", results) for at in range(count)]


def test_a_report_of_any_number_of_pods_stays_small() -> None:
    """The summary counts all results; failures are listed first, and the rest is said."""
    longest = AUDITED._replace(message="é" * 500)
    found = [*pods(5000, longest), *pods(3, LOST), *pods(7)]
    made = report("research", found, before=None, owner=OWNER, now=1)
    assert made["summary"] == {"pass": 7, "fail": 3, "warn": 5000, "error": 0, "skip": 0}
    assert len(made["results"]) == RESULTS_PER_REPORT + 1
    assert [each["result"] for each in made["results"][:4]] == ["fail", "fail", "fail", "warn"]
    last = made["results"][-1]
    assert (last["policy"], "4,803 of 5,003" in last["message"]) == (SHORTENED, True)
    # etcd takes 1.5 MB.
    assert len(json.dumps(made, ensure_ascii=False).encode()) < 400_000


def test_the_order_of_pods_does_not_matter() -> None:
    """The API server returns pages in any order."""
    found = [*pods(5, AUDITED), *pods(5, LOST)]
    first = report("research", found, before=None, owner=None, now=1)
    assert report("research", reversed(found), before=None, owner=None, now=1) == first


def test_a_result_keeps_its_time_while_it_holds() -> None:
    """Also where its message has other counts: Policy Reporter sends newer results to people."""
    before = report("research", pods(1, LOST), before=None, owner=None, now=1)
    more = [*pods(1, LOST._replace(message="0 of 4 nodes")), *pods(2, AUDITED)]
    after = report("research", more, before=before, owner=None, now=9)
    seconds = {each["policy"]: each["timestamp"]["seconds"] for each in after["results"]}
    assert seconds == {NO_NODE: 1, "strict": 9}


def test_a_report_is_written_only_if_something_of_ours_differs() -> None:
    """Other labels and managedFields are not ours; an owner that is gone is."""
    wanted = report("research", pods(1, LOST), before=None, owner=OWNER, now=1)
    stored = json.loads(json.dumps(wanted))
    stored["metadata"] |= {"resourceVersion": "7", "managedFields": [{}]}
    stored["metadata"]["labels"]["team"] = "a"
    assert not differs(wanted, stored)
    changes: tuple[dict[str, object], ...] = (
        {"summary": {**wanted["summary"], "fail": 2}},
        {"results": []},
        {"metadata": {**stored["metadata"], "labels": {}}},
        {"metadata": {**stored["metadata"], "ownerReferences": []}},
    )
    for change in changes:
        assert differs(wanted, {**stored, **change})
