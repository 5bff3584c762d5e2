"""Replicas of which the same becomes are told together, others apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.cli.files import POD, POLICIES, REJECTED
from tests.policy_tests.writing import policy
from tests.wording import mentions
from webhook.cli.decisions import decisions, unlisted_classes
from webhook.cli.offline import read_offline
from webhook.evaluation.replicas import Replicas
from webhook.workloads.template import MAX_REPLICAS

FIRST_AND_THIRD = policy("some", "match: {replicaIndexes: [0, 2]}, defaults: {schedulerName: s}")
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: sweep}
spec:
  completions: 4
  completionMode: Indexed
  template:
    metadata: {labels: {fairlead.dev/run: sweep}}
    spec: {containers: [{name: main, image: i}], restartPolicy: Never}
"""


def decided(folder: Path, objects: str, policies: str = POLICIES) -> list[Replicas]:
    (folder / "o.yaml").write_text(objects)
    (folder / "p.yaml").write_text(policies)
    return decisions(read_offline([folder / "o.yaml"], [folder / "p.yaml"], "ml", None))


def test_of_very_many_replicas_the_last_stands_for_the_rest(tmp_path: Path) -> None:
    """No policy lists so many indexes."""
    many = JOB.replace("completions: 4", f"completions: {2**31 - 1}")
    some, others = decided(tmp_path, many, FIRST_AND_THIRD)
    assert (some.indexes, some.count) == ((0, 2), 2)
    assert len(others.indexes) == MAX_REPLICAS - 2
    mentions(others.subject, "Job/sweep", f" 1, 3-{2**31 - 2} ", f" {2**31 - 1}")


def test_a_pod_from_the_cluster_is_decided_on_as_it_is(tmp_path: Path) -> None:
    """With our stamp on it nothing is left to do; bound, its placement is what it is."""
    (first,) = decided(tmp_path, POD)
    again = first.evaluation.patched
    (second,) = decided(tmp_path, json.dumps(again))
    assert (second.decision.result, list(second.decision.patch)) == ("unchanged", [])
    (bound,) = decided(tmp_path, POD + "  nodeName: steady-1\n")
    assert {entry.outcome for entry in bound.decision.trace} == {"skipped"}


def test_a_rejected_pod_stays_as_it_is(tmp_path: Path) -> None:
    """There is no patch."""
    (found,) = decided(tmp_path, POD + "  nodeSelector: {arch: arm64}\n", REJECTED)
    assert not found.decision.allowed
    assert found.evaluation.patched == found.arrival.pod


def test_a_cluster_without_a_class_refuses_the_pods_that_get_it(tmp_path: Path) -> None:
    """The policy's and the pod's own; classes that the cluster always has are not looked up."""
    named = policy("urgent", "defaults: {priorityClassName: urgent}")
    (tmp_path / "o.yaml").write_text(POD)
    (tmp_path / "p.yaml").write_text(named)
    offline = read_offline([tmp_path / "o.yaml"], [tmp_path / "p.yaml"], "ml", None)
    (unasked,) = decisions(offline)
    assert unasked.admitted
    assert not list(unlisted_classes([unasked]))
    (refused,) = decisions(
        replace(offline, world=replace(offline.world, classes={"PriorityClass": ["urgents"]}))
    )
    (line,) = refused.refusals
    mentions(
        line, "priorityClassName: policy urgent sets it", "no PriorityClass 'urgent'", "urgents"
    )
    assert not refused.admitted
    (there,) = decisions(
        replace(offline, world=replace(offline.world, classes={"PriorityClass": ["urgent"]}))
    )
    assert there.admitted
    (unlisted,) = decisions(replace(offline, world=replace(offline.world, classes={})))
    (note,) = unlisted_classes([unlisted])
    mentions(note, "unknown", "PriorityClass urgent")
