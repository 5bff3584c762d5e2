"""Dask: where the scheduler is, and what each worker is called.

Every variable `DASK_X_Y` is the setting `x-y` (`dask/config.py`, `collect_env`);
`scheduler-address` is read by `Client()`, by `dask worker` and by its nanny
(`distributed/client.py`, `cli/dask_worker.py`, `nanny.py`; read and tried in 2026.8.0). A worker's
name Dask takes from its command line only: `dask worker --name $(DASK_WORKER_NAME)`, as Dask's own
operator has it.

The scheduler is told its own address too: a program in its pod is a client like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.run.gang import Told

if TYPE_CHECKING:
    from webhook.run.gang import Gang


def tell(gang: Gang, role: str, index: int) -> Told:
    """The scheduler's address, and to a worker its name."""
    env = {"DASK_SCHEDULER_ADDRESS": f"tcp://{gang.host('scheduler', 0)}:{gang.port}"}
    if role == "worker":
        env["DASK_WORKER_NAME"] = gang.pod(role, index)
    return Told(env)
