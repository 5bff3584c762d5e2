"""A live pod leads as its object says: not by its labels alone."""

from __future__ import annotations

from pathlib import Path

from tests.policy_tests.writing import policy
from webhook.questions.offline import read_offline
from webhook.questions.policies.reading import PolicyMatcher
from webhook.workloads.object import Object

POLICY = policy("leaders", "match: {coordinator: true}, defaults: {nodeSelector: {pool: a}}")
JOB = """\
apiVersion: kubeflow.org/v1
kind: PaddleJob
metadata: {name: pj, namespace: ml, uid: "1"}
spec:
  paddleReplicaSpecs:
    Master:
      template: {spec: {containers: [{name: paddle, image: example.invalid/x}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: paddle, image: example.invalid/x}]}}
"""


def test_a_worker_beside_a_master_does_not_lead(tmp_path: Path) -> None:
    """Worker 0 of a job without a master does: the policy would apply to it."""
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "j.yaml").write_text(JOB)
    offline = read_offline([tmp_path / "j.yaml"], [tmp_path / "p.yaml"], "ml", None)
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "name": "pj", "uid": "1"}
    found = {}
    for template in offline.templates:
        pod = template.pod(0)
        metadata = {**pod["metadata"], "name": "p", "namespace": "ml"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        live = PolicyMatcher(offline.world, offline.templates).pod(
            Object("cluster", {**pod, "metadata": metadata})
        )
        found[template.part] = live and live.matching
    assert found == {"master": frozenset({"leaders"}), "worker": frozenset()}
