"""Paddle: the variables of `paddle.distributed.launch`.

Source: Paddle 3.3.1, `distributed/launch/context/args_envs.py` (each variable there overrides the
option of its name), `controllers/master.py` and `controllers/ps.py`; and Kubeflow's training
operator 1.8.1 (`pkg/controller.v1/paddlepaddle/envvar.go`).

The launcher becomes the rendezvous server only if its master address is 127.0.0.1 or its own IP. So
the leader (the master; else server 0; else worker 0) gets 127.0.0.1, and sends the others its IP
after the start. Ranks are set explicitly (`PADDLE_RANK`), because Paddle would use random names.

With servers, each server gets a count of one server, and each worker a count of one trainer. Up to
3.3.1 the launcher nevertheless starts at least one of both in every pod.

A PaddleJob's Master is a parameter server. In a Run the master leads, and servers have their own
role.
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

PORT: Final = 36543


class Paddle(Strict):
    """Paddle's own settings."""

    port: int | None = port_field(PORT, "The master's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the leader's address, the number of pods, the run's name, and this pod's rank."""
    rank = gang.rank(role, index)
    env = {
        "PADDLE_MASTER": f"{gang.leader if rank else '127.0.0.1'}:{gang.port}",
        "PADDLE_NNODES": str(gang.size),
        "PADDLE_JOB_ID": gang.run,
        "PADDLE_RANK": str(rank),
    }
    if "server" in gang.counts:
        env["PADDLE_SERVER_NUM" if role == "server" else "PADDLE_TRAINER_NUM"] = "1"
    return ReplicaEnv(env)


FRAMEWORK: Final = Framework(
    name="paddle",
    title="Paddle",
    settings=Paddle,
    roles=Roles(
        ("master", "server", "worker"),
        single=frozenset({"master"}),
        required=(("master", "worker"),),
        ends=("master", "worker"),
    ),
    port=PORT,
    render_env=render_env,
    polyaxon={"paddlejob": PolyaxonRuntime("experiment", "paddle", same_names("master", "worker"))},
)
