"""Dask: where the scheduler is, and what each worker is called.

Every variable `DASK_X_Y` is the setting `x-y` (`dask/config.py`, `collect_env`);
`scheduler-address` is read by `Client()`, by `dask worker` and by its nanny
(`distributed/client.py`, `cli/dask_worker.py`, `nanny.py`; read and tried in 2026.8.0). A worker's
name Dask takes from its command line only: `dask worker --name $(DASK_WORKER_NAME)`, as Dask's own
operator has it.

The scheduler is told its own address too: a program in its pod is a client like any other.

Roles are those of Dask's own operator, with the driver of Fairlead's contract. A client gives up
after 30 s without the scheduler (`distributed.comm.timeouts.connect`), so the driver's pod is made
when the scheduler runs. Workers wait as long as it takes.
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

PORT: Final = 8786


class Dask(Strict):
    """Dask's own settings."""

    port: int | None = port_field(PORT, "The scheduler's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """The scheduler's address, and to a worker its name."""
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
)
