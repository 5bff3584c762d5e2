"""JAX: the coordinator's address, the number of processes, and each process's number.

JAX itself reads only `JAX_COORDINATOR_ADDRESS` (`jax/_src/distributed.py`, read and tested in
0.10.2). It takes the number of processes and the process's own as arguments of
`jax.distributed.initialize`, or from clusters that it detects, which do not include Runs.
`JAX_NUM_PROCESSES` and `JAX_PROCESS_ID` are the names in Kubeflow's Trainer 2.2.0
(`pkg/runtime/framework/plugins/jax`). The older four are those of its training operator 1.9.2
(`pkg/controller.v1/jax/envvar.go`), where the address has no port.

The role and the port are those of the training operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks.framework import Framework, ReplicaEnv, Roles, port_field
from webhook.strict import Strict

if TYPE_CHECKING:
    from webhook.frameworks.replica_group import Gang

PORT: Final = 6666


class Jax(Strict):
    """JAX's own settings."""

    port: int | None = port_field(PORT, "The coordinator's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the coordinator's address, the number of processes, and this process's number."""
    count, process = str(gang.size), str(gang.rank(role, index))
    return ReplicaEnv(
        {
            "JAX_COORDINATOR_ADDRESS": f"{gang.leader}:{gang.port}",
            "JAX_NUM_PROCESSES": count,
            "JAX_PROCESS_ID": process,
            "COORDINATOR_ADDRESS": gang.leader,
            "COORDINATOR_PORT": str(gang.port),
            "NUM_PROCESSES": count,
            "PROCESS_ID": process,
        }
    )


FRAMEWORK: Final = Framework(
    name="jax",
    title="JAX",
    settings=Jax,
    roles=Roles(("worker",), single=frozenset(), required=(("worker",),), ends=("worker",)),
    port=PORT,
    render_env=render_env,
    worker_zero_leads=True,
)
