"""What a program makes of torch.distributed's variables, and torchrun of its own.

Written from `_env_rendezvous_handler` in `torch/distributed/rendezvous.py`; and from
`torch/distributed/argparse_util.py` and `run.py` (`get_args_parser`, `parse_min_max_nnodes`,
`get_rdzv_endpoint`, `config_from_args`) of PyTorch 2.15.0. Those functions themselves, taken out of
the wheel, gave the same for the runs of `test_pytorch.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.frameworks.resolvers.view import Env, View, address


class Torchrun(NamedTuple):
    """The options of torchrun that the variables decide."""

    nodes: tuple[int, int]
    processes: str
    backend: str
    endpoint: str
    run_id: str
    max_restarts: int
    node_rank: int
    standalone: bool


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """init_method env://, in a program that is started by itself."""
    rank, world = int(env["RANK"]), int(env["WORLD_SIZE"])
    host, port = env["MASTER_ADDR"], int(env["MASTER_PORT"])
    assert 0 <= rank < world
    launched = torchrun(env)
    assert launched.node_rank == rank
    assert address(launched.endpoint) == (host, port)
    cluster = (host, port, world, launched._replace(node_rank=0))
    return View(cluster, rank, frozenset({host}), launched.nodes[1])


def torchrun(env: Env) -> Torchrun:
    """Every option comes from PET_<OPTION>; numbers are parsed, flags as numbers."""

    def option(name: str, default: str) -> str:
        return env.get(f"PET_{name}", default)

    least, _, most = option("NNODES", "1:1").partition(":")
    nodes = int(least), int(most or least)
    assert 0 < nodes[0] <= nodes[1]
    backend, endpoint = option("RDZV_BACKEND", "static"), option("RDZV_ENDPOINT", "")
    if backend == "static" and not endpoint:
        endpoint = f"{option('MASTER_ADDR', '127.0.0.1')}:{int(option('MASTER_PORT', '29500'))}"
    restarts = int(option("MAX_RESTARTS", "0"))
    assert restarts >= 0
    processes = option("NPROC_PER_NODE", "1")
    assert processes in ("auto", "gpu", "cpu") or int(processes) > 0
    return Torchrun(
        nodes,
        processes,
        backend,
        endpoint,
        option("RDZV_ID", "none"),
        restarts,
        int(option("NODE_RANK", "0")),
        bool(int(option("STANDALONE", "0"))),
    )
