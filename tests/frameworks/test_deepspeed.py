"""DeepSpeed's hostfile and variables, by example."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.frameworks.resolvers.deepspeed import hostfile
from tests.frameworks.resolvers.mpi import ssh
from tests.wording import Wording, mentions
from webhook.errors import InvalidRun
from webhook.frameworks.deepspeed import DeepSpeed, render_env, render_shared
from webhook.frameworks.framework import MAX_VARIABLE, ReplicaEnv, SharedConfig
from webhook.frameworks.replica_group import Gang

MASTER = {"MASTER_ADDR": "llama-worker-0.llama.ml.svc", "MASTER_PORT": "29500"}


def gang(
    options: dict[str, Any] | None = None,
    devices: dict[str, tuple[int, ...]] | None = None,
    name: str = "llama",
    **counts: int,
) -> Gang:
    """A run of DeepSpeed."""
    own = DeepSpeed.model_validate(options or {})
    return Gang(name, "ml", "deepspeed", counts, own, devices=devices or {})


def test_workers_alone_know_the_master_and_their_rank() -> None:
    """For `deepspeed --no_ssh`; they share the hostfile and no keys."""
    run = gang({"slotsPerWorker": 4}, worker=2)
    assert render_env(run, "worker", 1) == ReplicaEnv({**MASTER, "NODE_RANK": "1"})
    assert render_shared(run) == SharedConfig(
        {"hostfile": "llama-worker-0.llama.ml.svc slots=4\nllama-worker-1.llama.ml.svc slots=4\n"}
    )


def test_a_launcher_reaches_its_workers_by_pdsh_and_ssh() -> None:
    """The workers run sshd; the launcher takes no GPU that it did not ask for."""
    run = gang({"sshAuthMountPath": "/home/ds/.ssh", "sshPort": 2222}, launcher=1, worker=2)
    assert render_env(run, "launcher", 0) == ReplicaEnv(
        {
            **MASTER,
            "PDSH_SSH_ARGS_APPEND": "-F /etc/fairlead/ssh_config",
            "NVIDIA_VISIBLE_DEVICES": "",
            "NVIDIA_DRIVER_CAPABILITIES": "",
        }
    )
    worker = render_env(run, "worker", 1)
    assert worker.env == MASTER
    assert worker.command[0] == "/usr/sbin/sshd"
    assert worker.command[-2:] == ("-p", "2222")
    shared = render_shared(run)
    assert shared.ssh_keys_at == "/home/ds/.ssh"
    assert ssh(shared.files["ssh_config"])["IdentityFile"] == "/home/ds/.ssh/id_rsa"
    assert ssh(shared.files["ssh_config"])["Port"] == "2222"


def test_the_launcher_is_not_a_host() -> None:
    """It starts the processes, and none on itself, even with a GPU of its own."""
    run = gang({}, {"launcher": (1,), "worker": (8,)}, launcher=1, worker=1)
    assert hostfile(render_shared(run).files["hostfile"]) == {"llama-worker-0.llama.ml.svc": 8}
    assert "NVIDIA_VISIBLE_DEVICES" not in render_env(run, "launcher", 0).env


def test_slots_are_each_workers_gpus_or_one() -> None:
    """Unless the run sets them for all."""
    run = gang({}, {"worker": (8, 0)}, worker=2)
    assert [*hostfile(render_shared(run).files["hostfile"]).values()] == [8, 1]
    run = gang({"slotsPerWorker": 2}, {"worker": (8, 0)}, worker=2)
    assert [*hostfile(render_shared(run).files["hostfile"]).values()] == [2, 2]


@pytest.mark.parametrize(("count", "short"), [(500, False), (2_000, True)])
def test_addresses_are_short_where_deepspeed_could_not_pass_them_on(
    count: int, short: bool
) -> None:
    """DeepSpeed's --world_info is one argument; the master's address is one of the hosts."""
    run = gang(worker=count)
    slots = hostfile(render_shared(run).files["hostfile"])
    world = json.dumps({host: list(range(own)) for host, own in slots.items()}).encode()
    assert len(base64.urlsafe_b64encode(world)) <= MAX_VARIABLE
    form = run.short_host if short else run.host
    assert next(iter(slots)) == render_env(run, "worker", 7).env["MASTER_ADDR"] == form("worker", 0)


def test_a_run_that_deepspeed_cannot_list_is_refused(wording: Wording) -> None:
    """With what is too long, how long it is, and what to do."""
    with pytest.raises(InvalidRun) as refused:
        render_shared(gang(worker=9_000))
    (problem,) = refused.value.problems
    mentions(
        problem, "spec.replicas", "--world_info", "9000 workers", MAX_VARIABLE, "fewer workers"
    )
    wording(problem)
