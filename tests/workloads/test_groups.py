"""The pods of LeaderWorkerSet, Volcano and KServe are those that their controllers make."""

from __future__ import annotations

from tests.marked_pods import who
from tests.workloads.manifests import POD_SPEC, Json, labels, template, templates
from webhook.workloads.template import at

LWS = "leaderworkerset.x-k8s.io/v1"
CLAIM = ("persistentVolumeClaim", "claimName")
VOLCANO = "batch.volcano.sh/v1alpha1"
KSERVE = "serving.kserve.io"


def test_a_leader_worker_set_has_groups_of_a_leader_and_workers() -> None:
    """All groups count their workers from 1; the leader has index 0, and leads."""
    group = {"size": 4, "leaderTemplate": template(a="l"), "workerTemplate": template(a="w")}
    found = templates(LWS, "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": group})
    assert [each.describe() for each in found] == ["leader × 2", "worker × 6"]
    leader, worker = found
    assert labels(leader)["a"] == "l"
    first, last = labels(worker, 0), labels(worker, 5)
    key = "leaderworkerset.sigs.k8s.io/"
    assert (first[f"{key}group-index"], first[f"{key}worker-index"]) == ("0", "1")
    assert (last[f"{key}group-index"], last[f"{key}worker-index"]) == ("1", "3")
    assert last["statefulset.kubernetes.io/pod-name"] == "mnist-1-3"
    assert worker.pod(5)["metadata"]["annotations"][f"{key}leader-name"] == "mnist-1"
    assert (who(labels(leader)).role, who(labels(leader)).coordinator) == ("head", True)
    assert who(last, worker.pod(5)["metadata"]["annotations"]).replica_index == 3


def test_a_leader_without_a_template_has_the_workers() -> None:
    """A group of one is its leader."""
    group = {"workerTemplate": template(a="w")}
    (leader,) = templates(LWS, "LeaderWorkerSet", {"leaderWorkerTemplate": group})
    assert (leader.part, leader.count, labels(leader)["a"]) == ("leader", 1, "w")


def test_a_volcano_jobs_tasks_have_the_jobs_scheduler_and_priority() -> None:
    """Unless they say otherwise; the task's name is the role where it is one."""
    tasks = [
        {"name": "ps", "replicas": 2, "template": template(a="b")},
        {"replicas": 1, "template": {"spec": {**POD_SPEC, "priorityClassName": "high"}}},
    ]
    spec = {"tasks": tasks, "schedulerName": "volcano", "priorityClassName": "low", "queue": "q"}
    servers, other = templates(VOLCANO, "Job", spec)
    assert servers.pod(0)["spec"]["schedulerName"] == "volcano"
    assert servers.pod(0)["spec"]["priorityClassName"] == "low"
    assert other.pod(0)["spec"]["priorityClassName"] == "high"
    identity = who(labels(servers, 1))
    assert (identity.run, identity.role, identity.replica_index) == ("mnist", "ps", 1)
    assert labels(servers)["volcano.sh/queue-name"] == "q"
    assert labels(other)["volcano.sh/task-spec"] == "default1"
    assert servers.labels_path == "spec.tasks[0].template.metadata.labels"


def test_claims_of_groups_and_tasks_are_volumes_of_every_pod() -> None:
    """Those of LeaderWorkerSet as in a StatefulSet; Volcano's have no template."""
    claims = [{"metadata": {"name": "data"}}]
    group = {"size": 2, "workerTemplate": template(), "volumeClaimTemplates": claims}
    leader, worker = templates(LWS, "LeaderWorkerSet", {"leaderWorkerTemplate": group})
    names = [at(each.pod(0), ("spec", "volumes", 0, *CLAIM)) for each in (leader, worker)]
    assert names == ["data-mnist-0", "data-mnist-0-1"]
    volumes = [{"mountPath": "/a", "volumeClaimName": "a"}, {"mountPath": "/b", "volumeClaim": {}}]
    (task,) = templates(VOLCANO, "Job", {"tasks": [{"template": template()}], "volumes": volumes})
    assert [CLAIM[0] in each for each in task.pod(0)["spec"]["volumes"]] == [True, True]


def test_volcano_jobs_are_found_in_what_makes_them() -> None:
    """CronJob and JobTemplate."""
    job: Json = {"tasks": [{"name": "worker", "replicas": 3, "template": template()}]}
    (found,) = templates(VOLCANO, "CronJob", {"jobTemplate": {"spec": job}})
    assert found.count == 3
    (found,) = templates("flow.volcano.sh/v1alpha1", "JobTemplate", job)
    assert found.count == 3


def test_an_inference_service_has_its_components() -> None:
    """A component is the pod's spec; a model's container comes from a runtime."""
    predictor = {"minReplicas": 2, "model": {}, "nodeSelector": {"pool": "gpu"}}
    spec = {"predictor": predictor, "transformer": POD_SPEC}
    found = templates(f"{KSERVE}/v1beta1", "InferenceService", spec, labels={"a": "b"})
    assert [each.describe() for each in found] == ["predictor × 2", "transformer"]
    assert found[0].pod(0)["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert labels(found[0])["a"] == "b"
    identity = who(labels(found[0]))
    assert (identity.run, identity.kind) == ("mnist", "service")
    assert found[0].labels_path == "spec.predictor.labels"


def test_an_llm_inference_service_is_a_deployment_or_groups() -> None:
    """With a worker, it is a LeaderWorkerSet whose groups have the parallelism's size."""
    kind = (f"{KSERVE}/v1alpha2", "LLMInferenceService")
    router = {"scheduler": {"template": POD_SPEC}}
    found = templates(*kind, {"replicas": 3, "template": POD_SPEC, "router": router})
    assert [each.describe() for each in found] == ["server × 3", "scheduler"]
    assert {who(labels(each)).kind for each in found} == {"service"}
    spec = {
        "replicas": 2,
        "template": POD_SPEC,
        "worker": POD_SPEC,
        "parallelism": {"data": 8, "dataLocal": 2},
        "prefill": {"worker": POD_SPEC, "parallelism": {"pipeline": 2}},
    }
    found = templates(*kind, spec)
    assert [each.describe() for each in found] == [
        "leader × 2",
        "worker × 6",
        "prefill leader",
        "prefill worker",
    ]
    assert labels(found[1], 5)["leaderworkerset.sigs.k8s.io/worker-index"] == "3"
    assert labels(found[0])["llm-d.ai/role"] == "decode"
