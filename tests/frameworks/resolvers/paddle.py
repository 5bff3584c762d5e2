"""What paddle.distributed.launch makes of the variables.

Written from `context/args_envs.py` (each variable overrides its option) and `controllers/master.py`
(`HTTPMaster`) of Paddle 3.3.1. `args_envs.py` and `HTTPMaster` themselves, taken out of the wheel,
gave a master and two workers the ranks 0, 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View, address

LOCAL = "127.0.0.1"


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The pod that is told 127.0.0.1 serves; the others connect to it by its name."""
    host, port = address(env["PADDLE_MASTER"])
    nodes, rank = int(env["PADDLE_NNODES"]), int(env["PADDLE_RANK"])
    assert 0 <= rank < nodes
    assert (host == LOCAL) == (rank == 0)
    numbers = {name: int(env[name]) for name in sorted(env) if name.endswith("_NUM")}
    assert numbers in ({}, {"PADDLE_SERVER_NUM": 1}, {"PADDLE_TRAINER_NUM": 1})
    others = frozenset() if host == LOCAL else frozenset({host})
    return View((port, nodes, env["PADDLE_JOB_ID"], bool(numbers)), rank, others, nodes)
