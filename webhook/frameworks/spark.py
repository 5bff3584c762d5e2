"""Spark: the configuration with which the driver creates executors of the run.

A driver in a pod is in client mode: `spark-submit --master k8s://https://kubernetes.default.svc`.
Its configuration is passed as Java system properties in `SPARK_SUBMIT_OPTS`, which spark-submit,
spark-shell and pyspark pass to the driver's JVM (`SparkSubmitCommandBuilder.java`). A SparkConf
starts with the properties whose names begin with `spark.`; `--conf`, the properties file and the
program override them (`SparkSubmitArguments.scala`, `toSparkConf`). So the image's own
SPARK_CONF_DIR stays unchanged, and users can override everything.

The settings are those that Spark's `docs/running-on-kubernetes.md` requires in client mode: the
driver's address for executors, the pod that owns them, their namespace, labels and service account.
The program sets the executors' image, `spark.kubernetes.container.image`. The official image's
`entrypoint.sh` reads `SPARK_DRIVER_BIND_ADDRESS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from webhook import names
from webhook.frameworks.framework import Framework, ReplicaEnv, Roles, port_field
from webhook.strict import Strict

if TYPE_CHECKING:
    from webhook.frameworks.replica_group import Gang

# Labels only of the driver's pod, and labels by which the controller selects its own objects.
_OWN: Final = frozenset(
    {names.ROLE, names.REPLICA_INDEX, names.RUN_UID, names.ATTEMPT, names.MANAGED_BY}
)
# The driver starts before its name resolves, so it cannot bind to the name.
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  a pod's address is its own


PORT: Final = 7078
_MAX_TEXT: Final = 4096
_MAX_ITEMS: Final = 256
# What a container with the command of spark-submit says itself.
_OPERATOR: Final = "Only for the engine spark: elsewhere the container's command has it."


class Spark(Strict):
    """Spark's own settings."""

    executors: int | None = Field(
        default=None,
        ge=0,
        le=100000,
        description="The number of executors that the driver requests: spark.executor.instances.",
    )
    port: int | None = port_field(PORT, "The driver's port.")
    type: Literal["Java", "Python", "Scala", "R"] | None = Field(
        default=None, description=f"The language of the program. {_OPERATOR}"
    )
    spark_version: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+(\.\d+)?([-.][A-Za-z0-9.-]+)?$",
        max_length=63,
        description=f"The version of Spark in the image, such as 4.0.0. {_OPERATOR}",
    )
    main_application_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description=f"The program, such as local:///opt/etl.py. {_OPERATOR}",
    )
    main_class: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_TEXT,
        description=f"The main class of a program in Java or Scala. {_OPERATOR}",
    )
    arguments: list[Annotated[str, Field(max_length=_MAX_TEXT)]] | None = Field(
        default=None,
        max_length=_MAX_ITEMS,
        description=f"The arguments of the program. {_OPERATOR}",
    )
    conf: dict[str, Annotated[str, Field(max_length=_MAX_TEXT)]] | None = Field(
        default=None,
        max_length=_MAX_ITEMS,
        description=f"Spark's configuration, such as spark.executor.memory: 4g. {_OPERATOR}",
    )


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the driver's configuration, as options of its JVM."""
    properties = {
        "spark.driver.host": gang.host(role, index),
        "spark.driver.bindAddress": _ANY_ADDRESS,
        "spark.driver.port": str(gang.port),
        "spark.kubernetes.namespace": gang.namespace,
        "spark.kubernetes.driver.pod.name": gang.pod(role, index),
        "spark.kubernetes.authenticate.driver.serviceAccountName": gang.service_account,
        "spark.kubernetes.authenticate.executor.serviceAccountName": gang.service_account,
    }
    properties |= {
        f"spark.kubernetes.executor.label.{key}": value
        for key, value in sorted(executor_labels(gang).items())
    }
    executors = gang.settings(Spark).executors
    if executors is not None:
        properties["spark.executor.instances"] = str(executors)
    return ReplicaEnv(
        {
            "SPARK_SUBMIT_OPTS": " ".join(f"-D{key}={value}" for key, value in properties.items()),
            "SPARK_DRIVER_BIND_ADDRESS": _ANY_ADDRESS,
        }
    )


def executor_labels(gang: Gang) -> dict[str, str]:
    """Return the labels by which the webhook recognizes an executor as a pod of the run."""
    shared = {key: value for key, value in gang.labels.items() if key not in _OWN}
    role_labels = {names.RUN: gang.run, names.FRAMEWORK: "spark", names.ROLE: "executor"}
    return shared | role_labels


FRAMEWORK: Final = Framework(
    name="spark",
    title="Spark",
    settings=Spark,
    roles=Roles(
        ("driver",), single=frozenset({"driver"}), required=(("driver",),), ends=("driver",)
    ),
    port=PORT,
    render_env=render_env,
)
