"""Paddle: the variables of `paddle.distributed.launch`.

Read in Paddle 3.3.1: `distributed/launch/context/args_envs.py` (every variable there overrides the
option of its name), `controllers/master.py` and `controllers/ps.py`; and in Kubeflow's training
operator 1.8.1 (`pkg/controller.v1/paddlepaddle/envvar.go`).

The launcher becomes the rendezvous' server only if the address that it is told is 127.0.0.1 or its
own IP: the leader (the master; else server 0; else worker 0) is told the former, and gives the
others its IP when it has begun. Ranks are ours (`PADDLE_RANK`), not those of random names.

With servers, each server is told that it has one server, and each worker that it has one trainer.
Up to 3.3.1 the launcher starts at least one of both in every pod nevertheless.

A PaddleJob's Master is a parameter server. Ours leads, and servers have a role of their own.
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

PORT: Final = 36543


class Paddle(Strict):
    """Paddle's own settings."""

    port: int | None = port_field(PORT, "The master's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """The leader's address, the number of pods, the run's name, and this pod's rank."""
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
