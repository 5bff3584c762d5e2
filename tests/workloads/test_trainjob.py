"""The pods of a TrainJob are those of the JobSet that Trainer makes of its runtime."""

from __future__ import annotations

import copy
from typing import Any

from tests.marked_pods import who
from tests.wording import mentions
from tests.workloads.manifests import POD_SPEC, Json, labels, made_by
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate
from webhook.workloads.template_search import pod_templates, unread

GROUP = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def job(name: str, step: str | None = None) -> Json:
    """A replicated job of a runtime."""
    container = {**POD_SPEC["containers"][0], "name": "node"}
    metadata = {"metadata": {"labels": {STEP: step}}} if step else {}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return {"name": name, "template": {**metadata, **template}}


def runtime(*jobs: Json, kind: str = "ClusterTrainingRuntime", **policy: Any) -> Object:
    """A runtime by the name of mnist."""
    template = {"spec": {"replicatedJobs": list(jobs)}}
    return made_by(GROUP, kind, {"mlPolicy": policy, "template": template})


def found(spec: Json, *among: Object) -> list[PodTemplate]:
    """The templates of a TrainJob with the runtime mnist."""
    whole = {"runtimeRef": {"name": "mnist"}, **spec}
    return pod_templates(made_by(GROUP, "TrainJob", whole), among)


TORCH = runtime(job("dataset", "dataset-initializer"), job("node", "trainer"), numNodes=2, torch={})


def test_a_train_job_has_the_nodes_that_it_wants_else_its_runtime() -> None:
    """Each job of the runtime is one Job of a JobSet; the trainer's has the nodes."""
    first, node = found({}, TORCH)
    assert [first.describe(), node.describe()] == ["dataset", "node × 2"]
    (_, node) = found({"trainer": {"numNodes": 5}}, TORCH)
    assert node.count == 5
    leader, other = who(labels(node)), who(labels(node, 3))
    assert (leader.run, leader.role, leader.coordinator) == ("mnist", "worker", True)
    assert (other.replica_index, other.coordinator) == (3, False)


def test_patches_of_a_train_job_reach_the_jobs_that_they_name() -> None:
    """Both in the form of Trainer 2.1 and of 2.3; mappings are merged, lists are replaced."""
    override = {
        "targetJobs": [{"name": "node"}],
        "metadata": {"labels": {"team": "a"}},
        "spec": {"nodeSelector": {"pool": "ml"}, "containers": [{"name": "node", "env": []}]},
    }
    patch = {
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}
                            },
                        }
                    ]
                }
            }
        }
    }
    before = copy.deepcopy(TORCH.value)
    spec = {"podTemplateOverrides": [override], "runtimePatches": [patch]}
    first, node = found(spec, TORCH)
    pod = node.pod(0)
    assert pod["spec"]["nodeSelector"] == {"pool": "ml", "zone": "b"}
    assert pod["spec"]["containers"] == [{"name": "node", "image": "i"}]
    assert labels(node)["team"] == "a"
    assert "nodeSelector" not in first.pod(0)["spec"]
    assert TORCH.value == before


def test_an_mpi_runtimes_launcher_is_one_of_the_nodes_if_it_says_so() -> None:
    """The nodes are then one fewer, and at least one."""
    jobs = (job("launcher", "trainer"), job("node"))
    launcher, node = found({"trainer": {"numNodes": 4}}, runtime(*jobs, mpi={}))
    assert (launcher.count, node.count) == (1, 4)
    as_node = runtime(*jobs, mpi={"runLauncherAsNode": True})
    launcher, node = found({"trainer": {"numNodes": 4}}, as_node)
    assert (launcher.count, node.count) == (1, 3)


def test_a_runtime_is_found_by_kind_name_and_namespace() -> None:
    """ClusterTrainingRuntime is the default kind."""
    own = {"runtimeRef": {"name": "mnist", "kind": "TrainingRuntime"}}
    there = runtime(job("node", "trainer"), kind="TrainingRuntime")
    assert len(found(own, TORCH, there)) == 1
    assert found(own, TORCH) == []
    assert found({"runtimeRef": {"name": "other"}}, TORCH) == []


def test_a_train_job_without_its_runtime_is_told() -> None:
    """With the runtime's kind and name."""
    train_job = made_by(GROUP, "TrainJob", {"runtimeRef": {"name": "torch-distributed"}})
    (line,) = unread([train_job])
    mentions(line, "TrainJob/mnist", "ClusterTrainingRuntime/torch-distributed", "not given")


def test_malformed_runtimes_and_train_jobs_have_no_templates() -> None:
    """Nor an exception."""
    specs: list[Json] = [{}, {"trainer": []}, {"podTemplateOverrides": 3}, {"runtimePatches": [[]]}]
    lists: list[Any] = [[], [1], [{"name": "node"}], [{"template": {"spec": {"template": []}}}]]
    for spec in specs:
        for jobs in lists:
            template = {"spec": {"replicatedJobs": jobs}}
            broken = made_by(GROUP, "ClusterTrainingRuntime", {"template": template})
            assert found(spec, broken) == []
