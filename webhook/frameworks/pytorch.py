"""PyTorch: the variables of torch.distributed, and of torchrun.

The `env://` rendezvous reads `MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK`
(`torch/distributed/rendezvous.py`) if the program is started directly; torchrun sets them for each
of its processes. torchrun takes every option from the variable `PET_<OPTION>`
(`torch/distributed/argparse_util.py`, and `get_args_parser` in `torch/distributed/run.py`; both
read and tested in 2.15.0). It parses a flag as a number, so `PET_STANDALONE` is never set: an empty
value would raise ValueError.

Rank 0 is the master, or worker 0 without a master. It listens on the port.

An elastic PyTorchJob ends with the first worker that ends; a run ends with its master, or with all
its workers. An elastic run ends with those that worked when the first of them ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from webhook.errors import InvalidRun
from webhook.frameworks.framework import (
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    port_field,
    same_names,
)
from webhook.frameworks.native_default import native_default
from webhook.strict import OWN_ERROR, UNKNOWN_WORD, Problem, Strict, own_error, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.frameworks.replica_group import Gang

PORT: Final = 23456
_MOST_PROCESSES: Final = 1000
_WORDS: Final = ("auto", "gpu", "cpu")


class Elastic(Strict):
    """The limits of an elastic PyTorch run."""

    min_replicas: int = Field(ge=1, le=10000, description="The minimum number of nodes.")
    max_restarts: int = native_default(
        3, "The maximum restarts by torchrun in the pods.", ge=0, le=2**31 - 1
    )


def _processes_per_node(value: object) -> object:
    if isinstance(value, str) and value in _WORDS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_PROCESSES:
        return value
    raise own_error(
        f"want a whole number from 1 to {_MOST_PROCESSES}, or {', '.join(_WORDS)}: "
        f"not {quoted(value)}",
        UNKNOWN_WORD if isinstance(value, str) else OWN_ERROR,
    )


Processes: TypeAlias = Annotated[
    int | Literal["auto", "gpu", "cpu"],
    BeforeValidator(_processes_per_node),
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
        "container's limits if all replicas have the same number, else 1.",
    )
    elastic: Elastic | None = Field(
        default=None,
        description="For torchrun: allows the run to continue with fewer replicas. The maximum is "
        "the number of replicas in all roles.",
    )
    port: int | None = port_field(PORT, "The master's port.")


def find_problems(settings: object, replicas: int) -> Iterator[Problem]:
    """Yield a problem if minReplicas exceeds the number of replicas."""
    elastic = settings.get("elastic") if isinstance(settings, dict) else None
    least = elastic.get("minReplicas") if isinstance(elastic, dict) else None
    if isinstance(least, int) and least > replicas:
        yield Problem(
            ("pytorch", "elastic", "minReplicas"),
            f"{least} exceeds the total number of replicas, {replicas}",
        )


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the variables of torch.distributed and torchrun.

    WORLD_SIZE is replicas x processes per node. If only torchrun can count the processes (`auto`,
    `gpu` and `cpu`, unless all replicas have the same number of GPUs), it is the number of
    replicas; torchrun sets the correct value for its processes.
    """
    settings = gang.settings(PyTorch)
    address, port, rank = gang.leader, str(gang.port), str(gang.rank(role, index))
    env = {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(gang.size * gang.cached(_processes)),
        "RANK": rank,
        "PET_NNODES": str(gang.size),
        "PET_NPROC_PER_NODE": str(settings.nproc_per_node or gang.cached(_devices)),
        "PET_NODE_RANK": rank,
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }
    if settings.elastic is not None:
        env |= {
            "PET_NNODES": f"{settings.elastic.min_replicas}:{gang.size}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{address}:{port}",
            # The leader hosts the store, so the run's name is unique enough.
            "PET_RDZV_ID": gang.run,
            "PET_MAX_RESTARTS": str(settings.elastic.max_restarts),
        }
    return ReplicaEnv(env)


def check(gang: Gang) -> None:
    """Raise InvalidRun if minReplicas exceeds the number of replicas."""
    elastic = gang.settings(PyTorch).elastic
    if elastic is not None and elastic.min_replicas > gang.size:
        problem = (
            f"spec.pytorch.elastic.minReplicas: is {elastic.min_replicas}, and the run has "
            f"{gang.size} replicas: want 1 to {gang.size}, or more replicas"
        )
        raise InvalidRun([problem])


def _processes(gang: Gang) -> int:
    """Return the processes of each replica, as far as they are known before torchrun starts."""
    nproc = gang.settings(PyTorch).nproc_per_node
    if isinstance(nproc, int):
        return nproc
    return 1 if nproc == "cpu" else gang.cached(_devices)


def _devices(gang: Gang) -> int:
    """Return the GPUs of each replica if all have the same number above zero; else 1."""
    sizes = {gpus for role in gang.counts for gpus in gang.gpus(role)}
    return sizes.pop() or 1 if len(sizes) == 1 else 1


FRAMEWORK: Final = Framework(
    name="pytorch",
    title="PyTorch",
    settings=PyTorch,
    roles=Roles(
        ("master", "worker"),
        single=frozenset({"master"}),
        required=(("master", "worker"),),
        ends=("master", "worker"),
    ),
    port=PORT,
    render_env=render_env,
    check=check,
    find_problems=find_problems,
    rules=(
        (
            (
                "!has(self.pytorch) || !has(self.pytorch.elastic)"
                " || self.pytorch.elastic.minReplicas <="
                " (has(self.replicas) ? self.replicas.map(r, self.replicas[r].count).sum() : 1)"
            ),
            "is more than all replicas together: lower it, or raise a count",
            ".pytorch.elastic.minReplicas",
        ),
    ),
    polyaxon={
        "pytorchjob": PolyaxonRuntime("experiment", "pytorch", same_names("master", "worker"))
    },
)
