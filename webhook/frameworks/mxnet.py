"""MXNet: the variables of ps-lite.

Source: ps-lite (`src/postoffice.cc`, `src/van.cc` and `src/zmq_van.h`: with `DMLC_USE_KUBERNETES`
the scheduler binds 0.0.0.0 instead of its public name) and Kubeflow's training operator 1.8.1
(`pkg/controller.v1/mxnet/mxnet.go`). The roles are those of ps-lite.

A run ends with its workers. MXJob ends with the scheduler, which ends just after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks.framework import (
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    port_field,
    same_names,
)
from webhook.strict import Strict

if TYPE_CHECKING:
    from webhook.frameworks.replica_group import Gang

PORT: Final = 9091


class MXNet(Strict):
    """MXNet's own settings."""

    port: int | None = port_field(PORT, "The scheduler's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:  # noqa: ARG001  ps-lite counts them itself
    """Return the scheduler's address, the numbers of servers and workers, and the role."""
    return ReplicaEnv(
        {
            "DMLC_PS_ROOT_URI": gang.host("scheduler", 0),
            "DMLC_PS_ROOT_PORT": str(gang.port),
            "DMLC_NUM_SERVER": str(gang.counts.get("server", 0)),
            "DMLC_NUM_WORKER": str(gang.counts.get("worker", 0)),
            "DMLC_ROLE": role,
            "DMLC_USE_KUBERNETES": "1",
        }
    )


FRAMEWORK: Final = Framework(
    name="mxnet",
    title="MXNet",
    settings=MXNet,
    roles=Roles(
        ("scheduler", "server", "worker"),
        single=frozenset({"scheduler"}),
        required=(("scheduler",), ("server",), ("worker",)),
        ends=("worker",),
    ),
    port=PORT,
    render_env=render_env,
    polyaxon={
        "mxjob": PolyaxonRuntime("experiment", "mxnet", same_names("scheduler", "server", "worker"))
    },
)
