"""PyTorch: the variables of torch.distributed, and of torchrun.

`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK` are read by the `env://` rendezvous
(`torch/distributed/rendezvous.py`), where the program is started by itself; torchrun sets them
anew for each of its processes. torchrun takes every option from the variable `PET_<OPTION>`
(`torch/distributed/argparse_util.py`, and `get_args_parser` in `torch/distributed/run.py`; both
read, and tried, in 2.15.0). A flag is parsed there as a number, so `PET_STANDALONE` is never set:
empty, it would be a ValueError.

Rank 0 is the master; in a run of workers alone, worker 0. It listens on the port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.errors import InvalidRun
from webhook.run.gang import Shared, Told
from webhook.run.model.frameworks import PyTorch

if TYPE_CHECKING:
    from webhook.run.gang import Gang


def tell(gang: Gang, role: str, index: int) -> Told:
    """The variables of torch.distributed and torchrun.

    WORLD_SIZE is replicas x processes per node. Where only torchrun can count the processes
    (`auto`, `gpu` and `cpu`, unless all replicas have as many GPUs), it is the number of replicas;
    torchrun tells its processes the true one.
    """
    own = gang.settings(PyTorch)
    address, port, rank = gang.leader, str(gang.port), str(gang.rank(role, index))
    env = {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(gang.size * gang.once(_processes)),
        "RANK": rank,
        "PET_NNODES": str(gang.size),
        "PET_NPROC_PER_NODE": str(own.nproc_per_node or gang.once(_devices)),
        "PET_NODE_RANK": rank,
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }
    if own.elastic is not None:
        env |= {
            "PET_NNODES": f"{own.elastic.min_replicas}:{gang.size}",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{address}:{port}",
            # The store is the leader's own, so the name tells runs apart well enough.
            "PET_RDZV_ID": gang.run,
            "PET_MAX_RESTARTS": str(own.elastic.max_restarts),
        }
    return Told(env)


def share(gang: Gang) -> Shared:
    """No files. Raises InvalidRun if an elastic run wants more replicas than it has."""
    elastic = gang.settings(PyTorch).elastic
    if elastic is not None and elastic.min_replicas > gang.size:
        problem = (
            f"spec.pytorch.elastic.minReplicas: is {elastic.min_replicas}, and the run has "
            f"{gang.size} replicas: want 1 to {gang.size}, or more replicas"
        )
        raise InvalidRun([problem])
    return Shared()


def _processes(gang: Gang) -> int:
    """Processes in each replica, as far as they are known before torchrun counts."""
    own = gang.settings(PyTorch).nproc_per_node
    if isinstance(own, int):
        return own
    return 1 if own == "cpu" else gang.once(_devices)


def _devices(gang: Gang) -> int:
    """The GPUs of each replica if all have as many, and any; else 1."""
    seen = {gpus for role in gang.counts for gpus in gang.gpus(role)}
    return seen.pop() or 1 if len(seen) == 1 else 1
