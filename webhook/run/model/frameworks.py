"""What only one framework knows, under its own name in a Run's spec."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from webhook.strict import Strict, own_error, shown

_MOST_PROCESSES = 1000
_WORDS = ("auto", "gpu", "cpu")


def _port(default: int, what: str) -> int | None:
    field: int | None = Field(
        default=None, ge=1, le=65535, description=f"{what} Default: {default}."
    )
    return field


class TensorFlow(Strict):
    """TensorFlow's own settings."""

    master_task_type: Literal["chief", "master"] = Field(
        default="chief",
        description="What TF_CONFIG calls the first replica's task. tf.distribute knows chief; "
        "old Estimator code wants master.",
    )
    port: int | None = _port(2222, "The port of every replica's server in TF_CONFIG.")


class Elastic(Strict):
    """Between how many nodes an elastic PyTorch run may have."""

    min_replicas: int = Field(ge=1, le=10000, description="As few nodes are enough to go on.")
    max_restarts: int = Field(
        default=3, ge=0, le=2**31 - 1, description="How often torchrun begins anew within the pods."
    )


def _processes(value: object) -> object:
    if isinstance(value, str) and value in _WORDS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_PROCESSES:
        return value
    raise own_error(
        f"want a whole number from 1 to {_MOST_PROCESSES}, or {', '.join(_WORDS)}: "
        f"not {shown(value)}"
    )


Processes: TypeAlias = Annotated[
    int | Literal["auto", "gpu", "cpu"],
    BeforeValidator(_processes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_PROCESSES},
                {"type": "string", "enum": list(_WORDS)},
            ]
        }
    ),
]


class PyTorch(Strict):
    """PyTorch's own settings."""

    nproc_per_node: Processes | None = Field(
        default=None,
        description="Processes in each replica, for torchrun. Default: the GPUs of the main "
        "container's limits if each replica has as many, else 1.",
    )
    elastic: Elastic | None = Field(
        default=None,
        description="For torchrun: the run goes on with fewer replicas. The most are those of "
        "all roles together.",
    )
    port: int | None = _port(23456, "The master's port.")


class Jax(Strict):
    """JAX's own settings."""

    port: int | None = _port(6666, "The coordinator's port.")


class Mpi(Strict):
    """MPI's own settings."""

    implementation: Literal["OpenMPI", "Intel", "MPICH"] = Field(
        default="OpenMPI", description="Whose mpirun it is: the hostfile's form follows it."
    )
    slots_per_worker: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Processes on each worker. Default: the GPUs of its main container's limits, "
        "else 1.",
    )
    ssh_auth_mount_path: str = Field(
        default="/root/.ssh",
        pattern=r"^/[^:]*$",
        max_length=1024,
        description="Where the run's SSH keys are mounted in every replica's main container.",
    )
    launcher_as_worker: bool = Field(
        default=False, description="Whether the launcher's pod is in the hostfile too."
    )
    port: int | None = _port(22, "The port of the workers' sshd.")


class XGBoost(Strict):
    """XGBoost's own settings."""

    port: int | None = _port(9999, "The tracker's port, on the master.")


class Paddle(Strict):
    """Paddle's own settings."""

    port: int | None = _port(36543, "The master's port.")


class MXNet(Strict):
    """MXNet's own settings."""

    port: int | None = _port(9091, "The scheduler's port.")


class Dask(Strict):
    """Dask's own settings."""

    port: int | None = _port(8786, "The scheduler's port.")


class Spark(Strict):
    """Spark's own settings."""

    executors: int | None = Field(
        default=None,
        ge=0,
        le=100000,
        description="How many executors the driver asks for: spark.executor.instances.",
    )
    port: int | None = _port(7078, "The driver's port.")


class Ray(Strict):
    """Ray's own settings."""

    port: int | None = _port(6379, "The head's port.")
