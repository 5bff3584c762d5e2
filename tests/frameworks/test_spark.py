"""Spark's configuration, by examples."""

from __future__ import annotations

from typing import Any

from tests.frameworks.resolvers.spark import configuration
from webhook import names
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.spark import Spark, executor_labels, render_env
from webhook.identity import identify

ANY = "0.0.0.0"  # noqa: S104  what is told, not what is bound
LABELS = {
    names.RUN: "etl",
    names.KIND: "experiment",
    names.FRAMEWORK: "spark",
    names.ROLE: "driver",
    names.REPLICA_INDEX: "0",
    names.RUN_UID: "8e1c",
    names.MANAGED_BY: names.MANAGER,
    "team": "vision",
}


def gang(options: dict[str, Any] | None = None) -> Gang:
    """A Spark run in namespace ml."""
    return Gang(
        "etl",
        "ml",
        "spark",
        {"driver": 1},
        Spark.model_validate(options or {}),
        labels=LABELS,
        service_account="etl-driver",
    )


def test_the_driver_knows_where_it_is_and_whose_executors_are() -> None:
    """In client mode, as Spark's page on Kubernetes has it."""
    told = render_env(gang({"executors": 5}), "driver", 0).env
    assert configuration(told) == {
        "spark.driver.host": "etl-driver-0.etl.ml.svc",
        "spark.driver.bindAddress": ANY,
        "spark.driver.port": "7078",
        "spark.kubernetes.namespace": "ml",
        "spark.kubernetes.driver.pod.name": "etl-driver-0",
        "spark.kubernetes.authenticate.driver.serviceAccountName": "etl-driver",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "etl-driver",
        "spark.kubernetes.executor.label.fairlead.dev/framework": "spark",
        "spark.kubernetes.executor.label.fairlead.dev/kind": "experiment",
        "spark.kubernetes.executor.label.fairlead.dev/role": "executor",
        "spark.kubernetes.executor.label.fairlead.dev/run": "etl",
        "spark.kubernetes.executor.label.team": "vision",
        "spark.executor.instances": "5",
    }
    assert told["SPARK_DRIVER_BIND_ADDRESS"] == ANY


def test_how_many_executors_is_sparks_to_say_unless_the_run_does() -> None:
    """Its own default, or dynamic allocation."""
    assert "spark.executor.instances" not in configuration(render_env(gang(), "driver", 0).env)
    none = configuration(render_env(gang({"executors": 0}), "driver", 0).env)
    assert none["spark.executor.instances"] == "0"


def test_the_webhook_knows_an_executor_as_the_runs() -> None:
    """By the labels that it gets from the driver and those that Spark adds."""
    added = {"spark-role": "executor", "spark-exec-id": "7", "spark-app-selector": "spark-1"}
    identity = identify({**executor_labels(gang()), **added}, {}, {})
    assert identity is not None
    assert (identity.run, identity.kind, identity.framework, identity.role) == (
        *("etl", "experiment", "spark", "executor"),
    )


def test_the_controller_does_not_take_an_executor_for_its_own() -> None:
    """It selects by these labels, and an executor is the driver's."""
    assert not executor_labels(gang()).keys() & {names.RUN_UID, names.MANAGED_BY}
