"""Everything that reads pods of others goes through the table of tests/hostile.py.

What cannot be read is a finding about that pod, or left out; never an exception of another kind.
A fault is not hidden here: tests/conftest.py takes the guard around a pod away.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import pytest

from tests import hostile
from tests.admission.reviews import Known, review
from tests.policy_tests.writing import policy
from tests.run.raw_pods import condition, raw_pod
from tests.run.scene import BEGIN, Scene, workers
from webhook import names
from webhook.admission.handler import Handler
from webhook.cluster_objects import unplaced_pods
from webhook.controller.policies.pod_results import PodJudge
from webhook.controller.policies.report_documents import report as report_document
from webhook.convert.engines.convert import convert_object
from webhook.decision.arrival import Cluster, DecisionInputs
from webhook.decision.prospects import Prospects
from webhook.dns_names import is_subdomain
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.replicas import evaluate_template
from webhook.evaluation.result import result_of
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.placement.node_groups import NodeGroups
from webhook.policy.load import load
from webhook.questions.diff.comparison_input import relevant_pod
from webhook.questions.live import report
from webhook.questions.live.focus import Focus
from webhook.questions.live.live_pods import Answer, Answers, LivePod, compare_pod
from webhook.run import observation
from webhook.run.observed import OwnedPod
from webhook.server.webhook_metrics import Metrics
from webhook.suspension import parse_suspension, resume
from webhook.times import to_second
from webhook.ui.pools import pod_of
from webhook.workloads.object import ANSWERED, Object, from_answer

Json = dict[str, Any]
NOW: Final = datetime(2026, 11, 28, 13, tzinfo=UTC)
POLICIES: Final = load(
    {
        "spot.yaml": policy(
            "p",
            "overrides: {tolerations: [{key: x, operator: Exists}], capacity: "
            "[{class: spot, mode: Constrain, fallback: {afterPending: 10m, afterDisruptions: 2}}]}",
        ).encode(),
        "class.yaml": b"""
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {lifecycle: spot}}]}
""",
    }
).policies
WORLD: Final = World(
    POLICIES,
    Cluster(),
    {},
    NOW,
    configuration=None,
    classes={},
    plugins=UNREAD,
    nodes=(),
    server=None,
    history=None,
)


def pod(annotations: Json, **spec: Any) -> Json:
    """A stored pod of a run. Its author named the node, unless the spec says otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "ml-team",
            "uid": "u",
            "labels": {names.RUN: "r", names.ROLE: "worker"},
            "annotations": annotations,
            "ownerReferences": [observed_owner()],
            "managedFields": [{"fieldsV1": {"f:spec": {"f:nodeName": {}, "f:containers": {}}}}],
        },
        "spec": {"containers": [{"name": "main", "image": "i"}], "nodeName": "n", **spec},
        "status": {"phase": "Running"},
    }


def observed_owner() -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "name": "mnist",
        "uid": "run-uid",
        "controller": True,
    }


METRICS: Final = Metrics()


def answer_reviews(annotations: Json) -> None:
    """Whoever the caller says to be: anybody reaches the port."""
    for user in ("somebody", names.CONTROLLER_USER):
        answer(orjson.dumps(review(pod(annotations), userInfo={"username": user})))


def answer(body: bytes) -> None:
    inputs = DecisionInputs(lambda: POLICIES, Known({"ml-team": {}}), lambda: "")
    reply = asyncio.run(Handler(inputs, METRICS).handle(body))
    assert reply.status in (200, 400), reply.body
    if reply.status == 200:
        assert "response" in orjson.loads(reply.body)


def explain(annotations: Json) -> None:
    """Text and JSON, with and without a node."""
    named, waiting = (
        compare_pod(WORLD, Object(ANSWERED, pod(annotations, nodeName=node)), ())
        for node in ("n", "")
    )
    assert list(report.lines(_answers(named), Focus()))
    json.dumps(report.document(_answers(waiting), Focus("p", "tolerations")), default=list)


def _answers(live: LivePod) -> Answers:
    return Answers(WORLD, [Answer(live.pod, [], [live.today], [live], is_pod=True)], [])


PROSPECTS: Final = Prospects(NodeGroups(()))


def write_reports(annotations: Json) -> None:
    """The pod beside it is judged, too."""
    other = pod({})
    other["metadata"]["name"] = "other"
    judge = PodJudge(WORLD, PROSPECTS)
    found = [*judge.judge([pod(annotations), other]), *judge.judge_rest()]
    assert found[-1].name == "other"
    assert judge.faults == 0
    assert orjson.dumps(report_document("ml-team", found, before=None, owner=None, now=0))


def evaluate_stored(annotations: Json) -> None:
    """As audit, diff and the policies' pages do."""
    stored = relevant_pod(pod(annotations), {}, POLICIES.sources)
    if stored is None:
        assert names.MIRROR_POD in annotations
        return
    source = from_answer("v1", "Pod", stored)
    for template in templates_of(source, [source], POLICIES.sources):
        for each in evaluate_template(WORLD, template, "ml-team"):
            orjson.dumps(result_of(each).document())


def look_at_lists(annotations: Json) -> None:
    """The doctor's and the pages' lists of pods."""
    unplaced_pods.read_pod(pod(annotations))
    pod_of(pod(annotations))
    observation.engine_pod(pod(annotations), names.ROLE, names.REPLICA_INDEX, {})


def restore_rules(annotations: Json) -> None:
    """The annotations of a webhook configuration."""
    metadata = {"resourceVersion": "1", "annotations": annotations}
    configuration = {"metadata": metadata, "webhooks": [{"name": "w", "rules": []}]}
    known = parse_suspension(configuration)
    if known:
        known.due(NOW)
    resume(configuration)


JOB_SET: Final = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "spec": {
        "replicatedJobs": [
            {
                "name": "worker",
                "template": {
                    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}
                },
            }
        ]
    },
}


def convert(annotations: Json) -> None:
    """A JobSet, in whose annotation the settings of its framework are."""
    if names.SETTINGS in annotations:
        labels = {names.FRAMEWORK: "pytorch"}
        metadata = {"name": "m", "labels": labels, "annotations": annotations}
        convert_object({"m.json": json.dumps({**JOB_SET, "metadata": metadata}).encode()})


def manage(annotations: Json) -> None:
    """A Run whose replica waits for a node: as time goes by, it is suspended, and it goes on."""
    scene = Scene(**workers(2), activeDeadlineSeconds=7200)
    waits = condition("PodScheduled", "False", "Unschedulable", "no node")
    waits["lastTransitionTime"] = to_second(BEGIN)
    metadata = {"annotations": annotations, "uid": scene.pod("worker-0").uid}
    raw = raw_pod(name="mnist-worker-0", metadata=metadata, status={"conditions": [waits]})
    owned = observation.pod(raw)
    assert owned is not None
    if owned in KNOWN:
        return
    KNOWN.add(owned)
    scene.observed = replace(scene.observed, pods={**scene.observed.pods, owned.name: owned})
    scene.later(60).later(3600)
    assert len(scene.role("worker").history) <= 2
    assert all(
        is_subdomain(e.capacity_class) for h in scene.role("worker").history for e in h.events
    )
    assert not scene.spec(suspend=True).later(60).pods
    assert scene.spec(suspend=False).pods == ["worker-0", "worker-1"]
    assert scene.later(9000).status.phase == "Failed"


KNOWN: Final = set[OwnedPod]()
FACES: Final[dict[str, Callable[[Json], None]]] = {
    "reviews": answer_reviews,
    "explain": explain,
    "policy reports": write_reports,
    "audit and diff": evaluate_stored,
    "doctor and pages": look_at_lists,
    "suspension": restore_rules,
    "conversion": convert,
    "runs": manage,
}


@pytest.mark.parametrize("face", FACES)
def test_no_annotation_ends_a_look_at_pods(face: str) -> None:
    """Whoever may patch a pod writes there what they like."""
    for name, written in hostile.cases():
        try:
            FACES[face](written)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error


def test_no_label_and_no_type_of_a_review_is_a_fault_of_ours() -> None:
    """A caller without credentials is not held to what the API server stores."""
    for key in hostile.KEYS:
        for text in hostile.PLAIN.values():
            whole = pod({})
            whole["metadata"]["labels"][key] = text
            answer(orjson.dumps(review(whole)))
    for field in ("labels", "annotations", "ownerReferences", "managedFields", "name"):
        for value in hostile.VALUES.values():
            for of in (value, f"[{value}]", f'{{"{names.PLACEMENT}": {value}}}'):
                whole = pod({})
                whole["metadata"][field] = "MARK"
                answer(orjson.dumps(review(whole)).replace(b'"MARK"', of.encode()))
