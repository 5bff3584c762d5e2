"""DeepSpeed: the launcher's hostfile, and SSH or pod-by-pod start.

Source: DeepSpeed 0.19.6, `deepspeed/launcher/runner.py` (the format of the hostfile, `--no_ssh`
with `--node_rank`, `--master_addr`, `--master_port`) and `multinode_runner.py` (PDSHRunner). The
hostfile is named on the command line; no variable names it. `MASTER_ADDR` and `MASTER_PORT` are
variables of torch.distributed, `NODE_RANK` is Lightning's; a container passes them as options.

- Workers only: each runs `deepspeed --no_ssh`, and needs no SSH.
- With a launcher: it runs `deepspeed`, which starts the workers by pdsh. pdsh takes options for ssh
  from `PDSH_SSH_ARGS_APPEND` (pdsh(1)). Keys, configuration and sshd are those of MPI. The
  launcher's pod is created when the workers run, and gets only the GPUs that it requests.

In both cases worker 0 hosts the store of torch.distributed, so it leads. The port is DeepSpeed's
default (TORCH_DISTRIBUTED_DEFAULT_PORT in `deepspeed/constants.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pydantic import Field

from webhook.errors import InvalidRun
from webhook.frameworks.framework import (
    MAX_VARIABLE,
    Framework,
    ReplicaEnv,
    Roles,
    SharedConfig,
    port_field,
)
from webhook.frameworks.mpi import (
    HOSTFILE,
    NO_DEVICES,
    SSH_CONFIG,
    SSH_OPTIONS,
    keys_field,
    slots_field,
    ssh_config,
    sshd_command,
)
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.frameworks.replica_group import Gang

PORT: Final = 29500


class DeepSpeed(Strict):
    """DeepSpeed's own settings."""

    slots_per_worker: int | None = slots_field()
    ssh_auth_mount_path: str = keys_field(
        "With a launcher: where the run's SSH keys are mounted in every replica's main container."
    )
    ssh_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="With a launcher: the port of the workers' sshd. Default: the image's own.",
    )
    port: int | None = port_field(PORT, "The port of torch.distributed on worker 0.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the master's address, and ssh options (launcher), sshd (its workers) or a rank."""
    settings = gang.settings(DeepSpeed)
    master = {"MASTER_ADDR": _find_address(gang)("worker", 0), "MASTER_PORT": str(gang.port)}
    if role == "launcher":
        devices = {} if any(gang.gpus(role)) else NO_DEVICES
        return ReplicaEnv({**master, "PDSH_SSH_ARGS_APPEND": SSH_OPTIONS, **devices})
    if "launcher" in gang.counts:
        return ReplicaEnv(master, sshd_command(settings.ssh_auth_mount_path, settings.ssh_port))
    return ReplicaEnv({**master, "NODE_RANK": str(index)})


def render_shared(gang: Gang) -> SharedConfig:
    """Return the hostfile; with a launcher also SSH keys and configuration.

    Raises InvalidRun if the hosts are too many for DeepSpeed's `--world_info`, which lists all.
    """
    settings, address = gang.settings(DeepSpeed), _find_address(gang)
    size = gang.cached(_find_address_and_size)[1]
    if size > MAX_VARIABLE:
        problem = (
            f"spec.replicas: DeepSpeed's --world_info of {gang.counts['worker']} workers would "
            f"have {size} bytes, with addresses as short as {gang.short_host('worker', 0)}; "
            f"{MAX_VARIABLE} are the most: give the run fewer workers, or a shorter name"
        )
        raise InvalidRun([problem])
    hosts = gang.cached(_count_slots)
    text = "".join(f"{address('worker', i)} slots={slots}\n" for i, slots in enumerate(hosts))
    if "launcher" not in gang.counts:
        return SharedConfig({HOSTFILE: text})
    keys = settings.ssh_auth_mount_path
    return SharedConfig({HOSTFILE: text, SSH_CONFIG: ssh_config(keys, settings.ssh_port)}, keys)


def _count_slots(gang: Gang) -> tuple[int, ...]:
    slots = gang.settings(DeepSpeed).slots_per_worker
    return tuple(slots or gpus or 1 for gpus in gang.gpus("worker"))


def _find_address(gang: Gang) -> Callable[[str, int], str]:
    return gang.cached(_find_address_and_size)[0]


def _find_address_and_size(gang: Gang) -> tuple[Callable[[str, int], str], int]:
    """Return the function for addresses (short if --world_info is too long), and its size."""
    size = _world_info_size(gang, gang.host)
    if size <= MAX_VARIABLE:
        return gang.host, size
    return gang.short_host, _world_info_size(gang, gang.short_host)


def _world_info_size(gang: Gang, address: Callable[[str, int], str]) -> int:
    """Return the bytes of `encode_world_info`: JSON of the hosts with their slots, in base64."""
    slots = enumerate(gang.cached(_count_slots))
    world = json.dumps({address("worker", index): list(range(count)) for index, count in slots})
    return -(-len(world) // 3) * 4


FRAMEWORK: Final = Framework(
    name="deepspeed",
    title="DeepSpeed",
    settings=DeepSpeed,
    roles=Roles(
        ("launcher", "worker"),
        single=frozenset({"launcher"}),
        required=(("worker",),),
        ends=("launcher", "worker"),
        after={"launcher": ("worker",)},
    ),
    port=PORT,
    render_env=render_env,
    render_shared=render_shared,
    worker_zero_leads=True,
)
