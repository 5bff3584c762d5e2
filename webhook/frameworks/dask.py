"""Dask: the scheduler's address and each worker's name.

Dask maps every variable `DASK_X_Y` to the setting `x-y` (`dask/config.py`, `collect_env`).
`Client()`, `dask worker` and its nanny read `scheduler-address` (`distributed/client.py`,
`cli/dask_worker.py`, `nanny.py`; read and tested in 2026.8.0). Dask takes a worker's name only from
its command line: `dask worker --name $(DASK_WORKER_NAME)`, as Dask's own operator does.

The scheduler gets its own address too, because a program in its pod is a client as well.

The roles are those of Dask's own operator, plus the driver of Fairlead's contract. A client gives
up after 30 s without the scheduler (`distributed.comm.timeouts.connect`), so the driver's pod is
created when the scheduler runs. Workers wait without a limit.
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

PORT: Final = 8786


class Dask(Strict):
    """Dask's own settings."""

    port: int | None = port_field(PORT, "The scheduler's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the scheduler's address, and a worker's name."""
    env = {"DASK_SCHEDULER_ADDRESS": f"tcp://{gang.host('scheduler', 0)}:{gang.port}"}
    if role == "worker":
        env["DASK_WORKER_NAME"] = gang.pod(role, index)
    return ReplicaEnv(env)


FRAMEWORK: Final = Framework(
    name="dask",
    title="Dask",
    settings=Dask,
    roles=Roles(
        ("scheduler", "worker", "driver"),
        single=frozenset({"scheduler", "driver"}),
        required=(("scheduler",),),
        ends=("driver", "scheduler"),
        after={"driver": ("scheduler",)},
    ),
    port=PORT,
    render_env=render_env,
    polyaxon={
        "daskjob": PolyaxonRuntime(
            "job", "dask", {"driver": "job", **same_names("scheduler", "worker")}
        ),
        "daskcluster": PolyaxonRuntime("job", "dask", same_names("scheduler", "worker")),
    },
    commands={
        "scheduler": ("dask", "scheduler"),
        "worker": ("dask", "worker", "--name", "$(DASK_WORKER_NAME)"),
    },
)
