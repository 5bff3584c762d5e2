"""The pods of Spark's and Dask's kinds are those that their operators make."""

from __future__ import annotations

from tests.marked_pods import who
from tests.workloads.manifests import POD_SPEC, Json, labels, templates
from webhook.workloads.template import PodTemplate

SPARK = "sparkoperator.k8s.io/v1beta2"
DASK = "kubernetes.dask.org/v1"
APP: Json = {
    "nodeSelector": {"disk": "ssd"},
    "driver": {"nodeSelector": {"pool": "steady"}, "labels": {"team": "a"}},
    "executor": {"instances": 3, "tolerations": [{"key": "spot", "operator": "Exists"}]},
}
CLUSTER: Json = {
    "scheduler": {"spec": POD_SPEC},
    "worker": {
        "replicas": 4,
        "metadata": {"labels": {"team": "a"}},
        "spec": {**POD_SPEC, "nodeSelector": {"pool": "ml"}},
    },
}


def spec_of(found: PodTemplate) -> Json:
    """The spec of a pod."""
    result: Json = found.pod(0)["spec"]
    return result


def test_a_spark_application_makes_a_driver_and_executors() -> None:
    """Fields of all pods come first; executors are counted from 1, as Spark does."""
    driver, executor = templates(SPARK, "SparkApplication", APP)
    assert [driver.describe(), executor.describe()] == ["driver", "executor × 3"]
    assert spec_of(driver)["nodeSelector"] == {"disk": "ssd", "pool": "steady"}
    assert spec_of(executor)["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert labels(driver)["team"] == "a"
    first, last = who(labels(executor)), who(labels(executor, 2))
    assert (first.run, first.role, first.replica_index, last.replica_index) == (
        "mnist",
        "executor",
        1,
        3,
    )
    assert who(labels(driver)).coordinator


def test_a_pod_template_of_a_spark_pod_replaces_the_fields_beside_it() -> None:
    """The operator's webhook leaves such a pod alone; only Spark's own settings are added."""
    template = {"spec": {**POD_SPEC, "nodeSelector": {"zone": "a"}}}
    driver = {**APP["driver"], "template": template}
    (found, _) = templates(SPARK, "SparkApplication", {**APP, "driver": driver})
    assert spec_of(found)["nodeSelector"] == {"zone": "a", "disk": "ssd"}
    assert labels(found)["team"] == "a"


def test_the_driver_of_a_client_is_no_pod() -> None:
    """It runs where it was submitted."""
    (found,) = templates(SPARK, "SparkApplication", {**APP, "mode": "client"})
    assert found.part == "executor"


def test_dynamic_allocation_starts_with_its_initial_executors() -> None:
    """Or with the fewest."""
    spec = {**APP, "executor": {}, "dynamicAllocation": {"enabled": True, "minExecutors": 2}}
    (_, found) = templates(SPARK, "SparkApplication", spec)
    assert found.count == 2
    spec["dynamicAllocation"]["initialExecutors"] = 5
    (_, found) = templates(SPARK, "SparkApplication", spec)
    assert found.count == 5


def test_a_scheduled_spark_application_makes_applications() -> None:
    """From its template, with its own labels."""
    (driver, executor) = templates(
        SPARK, "ScheduledSparkApplication", {"template": APP}, labels={"a": "b"}
    )
    assert executor.count == 3
    assert labels(driver)["a"] == "b"
    assert labels(driver)["spark-role"] == "driver"
    assert labels(driver)["sparkoperator.k8s.io/scheduled-app-name"] == "mnist"


def test_what_a_policy_sets_goes_into_the_fields_of_the_application() -> None:
    """The node selector of the driver gets what it adds, and no copy of the others'."""
    driver, _ = templates(SPARK, "SparkApplication", APP)
    before = driver.template
    after = {
        **before,
        "metadata": {**before["metadata"], "annotations": {"x": "y"}},
        "spec": {**before["spec"], "nodeSelector": {**before["spec"]["nodeSelector"], "c": "d"}},
    }
    value = driver.put({"spec": {"driver": {**APP["driver"]}}}, after)
    assert value["spec"]["driver"]["nodeSelector"] == {"pool": "steady", "c": "d"}
    assert value["spec"]["driver"]["annotations"] == {"x": "y"}
    assert value["spec"]["driver"]["labels"] == {"team": "a"}


def test_a_field_of_a_pod_is_found_in_the_object() -> None:
    """For messages about it: in the last of several fields, or beside them."""
    driver, _ = templates(SPARK, "SparkApplication", APP)
    assert driver.path_in_object(("spec", "nodeSelector", "a")) == (
        *("spec", "driver", "nodeSelector", "a"),
    )
    assert driver.path_in_object(("metadata", "labels", "x"))[:3] == ("spec", "driver", "labels")
    assert driver.path_in_object(("spec", "volumes")) == driver.path
    odd: Json = {**APP, "driver": []}
    driver, _ = templates(SPARK, "SparkApplication", odd)
    after = {**driver.template, "spec": {**driver.template["spec"], "affinity": {"a": {}}}}
    assert driver.put({"spec": {"driver": []}}, after) == {"spec": {"driver": []}}


def test_a_dask_cluster_has_a_scheduler_and_workers() -> None:
    """Pods have the labels of the cluster, too."""
    scheduler, worker = templates(DASK, "DaskCluster", CLUSTER, labels={"a": "b"})
    assert [scheduler.describe(), worker.describe()] == ["scheduler", "worker × 4"]
    assert worker.labels_path == "spec.worker.metadata.labels"
    assert labels(worker)["team"] == labels(scheduler).get("team", "a")
    assert labels(worker)["a"] == labels(scheduler)["a"] == "b"
    assert spec_of(worker)["nodeSelector"] == {"pool": "ml"}
    leader, other = who(labels(scheduler)), who(labels(worker))
    assert (leader.run, leader.role, leader.coordinator) == ("mnist", "scheduler", True)
    assert (other.run, other.framework, other.role) == ("mnist", "dask", "worker")


def test_a_dask_job_has_a_runner_and_a_cluster() -> None:
    """Both of one run, by the name of the job."""
    spec = {"job": {"spec": POD_SPEC}, "cluster": {"spec": CLUSTER}}
    runner, scheduler, worker = templates(DASK, "DaskJob", spec, labels={"a": "b"})
    assert [each.part for each in (runner, scheduler, worker)] == ["runner", "scheduler", "worker"]
    assert {who(labels(each)).run for each in (runner, scheduler, worker)} == {"mnist"}
    assert who(labels(runner)).role == "driver"
    assert labels(worker)["a"] == "b"


def test_a_dask_worker_group_belongs_to_its_cluster() -> None:
    """The run is the cluster that it names; an autoscaler makes no pods of its own."""
    spec = {"cluster": "sums", "worker": {"replicas": 2, "spec": POD_SPEC}}
    (found,) = templates(DASK, "DaskWorkerGroup", spec)
    assert (found.count, who(labels(found)).run) == (2, "sums")
    assert templates(DASK, "DaskAutoscaler", {"cluster": "sums", "minimum": 1}) == []
