"""The pods of systems that run steps: Argo, Tekton, and the trials of Katib."""

from __future__ import annotations

from tests.marked_pods import who
from tests.wording import mentions
from tests.workloads.manifests import POD_SPEC, Json, labels, made_by, template, templates
from webhook.policy.subject import volumes
from webhook.workloads.template_search import unread

ARGO = "argoproj.io/v1alpha1"
TEKTON = "tekton.dev/v1"
FLOW: Json = {
    "nodeSelector": {"pool": "cpu"},
    "podMetadata": {"labels": {"team": "a", "tier": "low"}},
    "templates": [
        {"name": "main", "dag": {"tasks": [{"name": "a", "template": "train"}]}},
        {
            "name": "train",
            "metadata": {"labels": {"tier": "high"}},
            "nodeSelector": {"pool": "gpu"},
            "container": {"image": "i"},
        },
        {"name": "note", "script": {"image": "i", "source": "echo"}},
    ],
}


def test_a_workflow_makes_pods_of_templates_that_run_something() -> None:
    """A template's own fields go before the workflow's; steps and dags are no pods."""
    train, note = templates(ARGO, "Workflow", FLOW)
    assert [train.describe(), note.describe()] == ["train per call", "note per call"]
    assert train.pod(0)["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert note.pod(0)["spec"]["nodeSelector"] == {"pool": "cpu"}
    assert train.pod(0)["spec"]["containers"] == [{"name": "main", "image": "i"}]
    assert labels(train) == {
        "team": "a",
        "tier": "high",
        "workflows.argoproj.io/workflow": "mnist",
        "workflows.argoproj.io/completed": "false",
    }
    assert train.labels_path == "spec.templates[1].metadata.labels"


def test_templates_of_workflows_are_read_wherever_they_are() -> None:
    """In a CronWorkflow, and in those that a Workflow refers to."""
    (first, _) = templates(ARGO, "CronWorkflow", {"workflowSpec": FLOW})
    assert labels(first)["workflows.argoproj.io/workflow"] == "mnist-0000000000"
    for kind in ("WorkflowTemplate", "ClusterWorkflowTemplate"):
        assert len(templates(ARGO, kind, FLOW)) == 2


def test_a_workflows_volumes_are_those_that_a_template_mounts() -> None:
    """And the template's own; a claim is a volume by its name."""
    mounts = [{"name": each, "mountPath": f"/{each}"} for each in ("work", "data")]
    train = {"name": "train", "container": {"image": "i", "volumeMounts": mounts}}
    note = {"name": "note", "script": {"image": "i"}, "volumes": [{"name": "own", "nfs": {}}]}
    spec: Json = {
        "templates": [train, note],
        "volumes": [{"name": "data", "hostPath": {}}, {"name": "other", "secret": {}}],
        "volumeClaimTemplates": [{"metadata": {"name": "work"}}],
    }
    trains, notes = templates(ARGO, "Workflow", spec)
    assert volumes(trains.pod(0)["spec"]) == {"hostPath", "persistentVolumeClaim"}
    assert volumes(notes.pod(0)["spec"]) == {"nfs"}
    assert "volumes" not in trains.mutated(0, trains.pod(0))["spec"]


def test_what_a_workflow_refers_to_is_told() -> None:
    """Templates of other objects, and patches of its pods."""
    task = {"name": "b", "templateRef": {"name": "shared", "template": "x"}}
    dag = {"name": "other", "dag": {"tasks": [task]}}
    spec = {"podSpecPatch": "{}", "templates": [*FLOW["templates"], dag]}
    patch, reference = unread([made_by(ARGO, "Workflow", spec)])
    mentions(patch, "Workflow/mnist", "spec.podSpecPatch", "not read")
    mentions(reference, "spec.templates.dag.tasks.templateRef")
    nested = {"templates": [{"name": "s", "steps": [[task]]}]}
    *_, line = unread([made_by(ARGO, "Workflow", nested)])
    mentions(line, "spec.templates.steps.templateRef")


def test_what_a_policy_sets_goes_into_the_workflows_template() -> None:
    """Also if it came from the workflow."""
    _, note = templates(ARGO, "Workflow", FLOW)
    before = note.template
    after = {**before, "spec": {**before["spec"], "nodeSelector": {"pool": "cpu", "c": "d"}}}
    value = note.put({"spec": {"templates": [{}, {}, {"name": "note"}]}}, after)
    assert value["spec"]["templates"][2]["nodeSelector"] == {"pool": "cpu", "c": "d"}


def test_a_task_run_is_one_pod() -> None:
    """With its own labels, and the placement of its podTemplate."""
    spec = {"taskRef": {"name": "build"}, "podTemplate": {"nodeSelector": {"pool": "ci"}}}
    (found,) = templates(TEKTON, "TaskRun", spec, labels={"fairlead.dev/run": "r"})
    assert found.pod(0)["spec"]["nodeSelector"] == {"pool": "ci"}
    assert who(labels(found)).run == "r"
    assert labels(found)["tekton.dev/taskRun"] == "mnist"


def test_a_pipeline_run_makes_a_pod_for_each_task() -> None:
    """Those at the end, too; a pipeline elsewhere and specs of single tasks are told."""
    spec: Json = {
        "pipelineSpec": {
            "tasks": [
                {"name": "get", "taskRef": {}},
                {"name": "fit", "taskSpec": {"metadata": {"labels": {"a": "task", "b": "task"}}}},
            ],
            "finally": [{"name": "tell", "taskSpec": {}}],
        },
        "taskRunTemplate": {"podTemplate": {"nodeSelector": {"pool": "ci"}}},
    }
    found = templates(TEKTON, "PipelineRun", spec, labels={"a": "run"})
    assert [each.part for each in found] == ["get", "fit", "tell"]
    assert found[2].pod(0)["spec"]["nodeSelector"] == {"pool": "ci"}
    assert labels(found[0])["tekton.dev/pipelineTask"] == "get"
    assert (labels(found[1])["a"], labels(found[1])["b"]) == ("run", "task")
    assert [labels(each)["tekton.dev/memberOf"] for each in found] == ["tasks", "tasks", "finally"]
    single = [{"pipelineTaskName": "fit", "podTemplate": {}}]
    (line,) = unread([made_by(TEKTON, "PipelineRun", {**spec, "taskRunSpecs": single})])
    mentions(line, "spec.taskRunSpecs.podTemplate", "not read")
    *_, line = unread([made_by(TEKTON, "PipelineRun", {"pipelineRef": {"name": "p"}})])
    mentions(line, "spec.pipelineRef")


def test_an_experiment_makes_trials_of_any_kind() -> None:
    """Each is an object of its trialSpec, and its pods have the trial's label as well."""
    trial = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template(a="b")}}},
    }
    spec = {"trialTemplate": {"trialSpec": trial}}
    (found,) = templates("kubeflow.org/v1beta1", "Experiment", spec, labels={"team": "x"})
    assert found.describe() == "worker × 2"
    assert labels(found)["team"] == "x"
    assert found.labels_path.startswith("spec.trialTemplate.trialSpec.spec.tfReplicaSpecs")
    identity = who(labels(found, 1))
    assert (identity.run, identity.kind) == ("mnist-xxxxxxxx", "experiment")
    assert (identity.framework, identity.role, identity.replica_index) == (
        "tensorflow",
        "worker",
        1,
    )


def test_a_trial_of_an_unknown_kind_is_searched_by_shape() -> None:
    """As such an object by itself would be."""
    trial = {"apiVersion": "example.com/v1", "kind": "Gang", "spec": {"one": {"spec": POD_SPEC}}}
    spec = {"trialTemplate": {"trialSpec": trial}}
    (found,) = templates("kubeflow.org/v1beta1", "Experiment", spec)
    assert found.part == "one"
