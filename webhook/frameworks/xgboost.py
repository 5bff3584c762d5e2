"""XGBoost: the tracker's address and the worker's number.

The tracker runs in the master, next to the worker of rank 0: all replicas train. XGBoost takes the
upper-case names as arguments of `xgboost.collective.CommunicatorContext`
(`src/collective/comm_group.cc`: `DMLC_TRACKER_URI`, `DMLC_TRACKER_PORT`, `DMLC_TASK_ID`; the task
id sets the rank); its older rabit takes them from the environment. Kubeflow's Trainer 2.2.0 sets
them together with `DMLC_NUM_WORKER` (`pkg/runtime/framework/plugins/xgboost`); the others are those
of its training operator 1.8.1 (`pkg/controller.v1/xgboost`). Tested with XGBoost 3.2.0.

LightGBM programs use `WORKER_ADDRS` and `WORKER_PORT`: they build their list of machines from these
and the master's address.

Roles, port and end are those of the training operator. A worker gives up after some seconds without
the tracker (`dmlc_retry`), which is not a failure of the program: its pod is created when the
master runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks.framework import (
    MAX_VARIABLE,
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

PORT: Final = 9999


class XGBoost(Strict):
    """XGBoost's own settings."""

    port: int | None = port_field(PORT, "The tracker's port, on the master.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the tracker's address, the number of workers including the master, and the rank."""
    port, size, rank = str(gang.port), str(gang.size), str(gang.rank(role, index))
    env = {
        "DMLC_TRACKER_URI": gang.leader,
        "DMLC_TRACKER_PORT": port,
        "DMLC_TASK_ID": rank,
        "DMLC_NUM_WORKER": size,
        "MASTER_ADDR": gang.leader,
        "MASTER_PORT": port,
        "WORLD_SIZE": size,
        "RANK": rank,
    }
    if addresses := gang.cached(_worker_addresses):
        env |= {"WORKER_ADDRS": addresses, "WORKER_PORT": port}
    return ReplicaEnv(env)


def _worker_addresses(gang: Gang) -> str:
    """Return the workers' addresses; empty if they are too long, as XGBoost does not need them."""
    count = gang.counts.get("worker", 0)
    for host in (gang.host, gang.short_host):
        text = ",".join(host("worker", index) for index in range(count))
        if len(text) <= MAX_VARIABLE:
            return text
    return ""


FRAMEWORK: Final = Framework(
    name="xgboost",
    title="XGBoost",
    settings=XGBoost,
    roles=Roles(
        ("master", "worker"),
        single=frozenset({"master"}),
        required=(("master",),),
        ends=("master",),
        after={"worker": ("master",)},
    ),
    port=PORT,
    render_env=render_env,
    polyaxon={"xgbjob": PolyaxonRuntime("experiment", "xgboost", same_names("master", "worker"))},
)
