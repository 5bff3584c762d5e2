"""MXNet: where ps-lite's scheduler is, how many servers and workers there are, and what this is.

Read in ps-lite (`src/postoffice.cc`, `src/van.cc` and `src/zmq_van.h`: with
`DMLC_USE_KUBERNETES` the scheduler binds 0.0.0.0 rather than the name under which it is reached)
and in Kubeflow's training operator 1.8.1 (`pkg/controller.v1/mxnet/mxnet.go`). Our roles are
ps-lite's own words for them.

A run ends with its workers. The scheduler, at whose end MXJob looks, ends just after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.rendezvous.framework import (
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    port_field,
    same_names,
)
from webhook.strict import Strict

if TYPE_CHECKING:
    from webhook.run.gang import Gang

PORT: Final = 9091


class MXNet(Strict):
    """MXNet's own settings."""

    port: int | None = port_field(PORT, "The scheduler's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:  # noqa: ARG001  ps-lite counts them itself
    """The scheduler's address, the numbers of servers and workers, and the replica's role."""
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
