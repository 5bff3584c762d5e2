"""MPI's hostfile, its variables and ssh's configuration, by examples."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.resolvers.mpi import hostfile, ssh
from webhook.errors import InvalidRun
from webhook.frameworks.framework import ReplicaEnv, SharedConfig
from webhook.frameworks.mpi import Mpi, render_env, render_shared
from webhook.frameworks.replica_group import Gang

SSH = "-F /etc/fairlead/ssh_config"
# What every launcher is told that computes nothing.
LAUNCHER = {
    "K_MPI_JOB_ROLE": "launcher",
    "NVIDIA_VISIBLE_DEVICES": "",
    "NVIDIA_DRIVER_CAPABILITIES": "",
}


def gang(options: dict[str, Any] | None = None, *, domain: str = "", **counts: int) -> Gang:
    """An MPI run in namespace ml."""
    model = Mpi.model_validate(options or {})
    return Gang("pi", "ml", "mpi", {"launcher": 1, **counts}, model, domain)


def test_open_mpi_has_a_line_with_slots_for_each_worker() -> None:
    """The launcher is in it where the run says so, and comes first."""
    assert render_shared(gang({"slotsPerWorker": 2}, worker=2)).files["hostfile"] == (
        "pi-worker-0.pi.ml.svc slots=2\npi-worker-1.pi.ml.svc slots=2\n"
    )
    with_launcher = gang({"launcherAsWorker": True}, worker=1)
    assert render_shared(with_launcher).files["hostfile"] == (
        "pi-launcher-0.pi.ml.svc slots=1\npi-worker-0.pi.ml.svc slots=1\n"
    )


@pytest.mark.parametrize("implementation", ["Intel", "MPICH"])
def test_the_hydras_have_colons(implementation: str) -> None:
    """Intel MPI and MPICH write slots so."""
    run = gang({"implementation": implementation, "slotsPerWorker": 8}, worker=1)
    assert render_shared(run).files["hostfile"] == "pi-worker-0.pi.ml.svc:8\n"


def test_slots_are_each_workers_gpus_unless_the_run_says_otherwise() -> None:
    """And 1 where there are none."""
    devices = {"launcher": (0,), "worker": (4, 8, 0)}
    run = Gang("pi", "ml", "mpi", {"launcher": 1, "worker": 3}, devices=devices)
    slots = hostfile(render_shared(run).files["hostfile"], colon=False)
    assert [count for _, count in slots] == [4, 8, 1]
    assert "OMPI_MCA_orte_set_default_slots" not in render_env(run, "launcher", 0).env


def test_open_mpi_gets_its_old_and_new_variable_names() -> None:
    """Open MPI 5 reads PRRTE's."""
    assert render_env(gang(worker=2), "launcher", 0) == ReplicaEnv(
        {
            **LAUNCHER,
            "OMPI_MCA_orte_default_hostfile": "/etc/fairlead/hostfile",
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_set_default_slots": "1",
            "OMPI_MCA_plm_rsh_args": SSH,
            "PRTE_MCA_prte_default_hostfile": "/etc/fairlead/hostfile",
            "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
            "PRTE_MCA_prte_set_default_slots": "1",
            "PRTE_MCA_plm_ssh_args": SSH,
        }
    )


def test_no_argument_of_ssh_has_an_equals_sign() -> None:
    """PRRTE hands on to its daemons what stands before the first one."""
    for implementation in ("OpenMPI", "Intel", "MPICH"):
        run = gang({"implementation": implementation, "port": 2222}, worker=2)
        assert not any("=" in value for value in render_env(run, "launcher", 0).env.values())


def test_intel_mpi_and_mpich_have_variables_of_their_own() -> None:
    """None of another implementation's."""
    intel = gang({"implementation": "Intel", "slotsPerWorker": 4}, worker=2)
    assert render_env(intel, "launcher", 0).env == LAUNCHER | {
        "I_MPI_HYDRA_HOST_FILE": "/etc/fairlead/hostfile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH,
        "I_MPI_PERHOST": "4",
    }
    mpich = gang({"implementation": "MPICH"}, worker=2)
    assert render_env(mpich, "launcher", 0).env == LAUNCHER | {
        "HYDRA_HOST_FILE": "/etc/fairlead/hostfile",
        "HYDRA_LAUNCHER_EXTRA_ARGS": SSH,
    }


def test_a_launcher_that_computes_keeps_its_gpus() -> None:
    """Because the run says so, or because it asks for some."""
    as_worker = gang({"launcherAsWorker": True}, worker=1)
    asking = Gang("pi", "ml", "mpi", {"launcher": 1, "worker": 1}, devices={"launcher": (1,)})
    for run in (as_worker, asking):
        told = render_env(run, "launcher", 0).env
        assert told["K_MPI_JOB_ROLE"] == "launcher"
        assert "NVIDIA_VISIBLE_DEVICES" not in told


def test_hosts_are_discovered_by_their_addresses(tmp_path: Path) -> None:
    """Those of the hostfile that have one, in its order, without their slots."""
    for implementation in ("OpenMPI", "Intel"):
        run = gang({"implementation": implementation, "slotsPerWorker": 8}, worker=3)
        files = render_shared(run).files
        hostfile = tmp_path / "hostfile"
        hostfile.write_text(files["hostfile"])
        (tmp_path / "getent").write_text('#!/bin/sh\n[ "$2" != pi-worker-1.pi.ml.svc ]\n')
        (tmp_path / "getent").chmod(0o755)
        script = files["discover_hosts.sh"].replace("/etc/fairlead/hostfile", str(hostfile))
        found = subprocess.run(
            ["/bin/sh", "-c", script],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            check=True,
            capture_output=True,
            text=True,
        )
        assert found.stdout.split() == ["pi-worker-0.pi.ml.svc", "pi-worker-2.pi.ml.svc"]


def test_a_worker_runs_sshd_unless_its_template_says_otherwise() -> None:
    """With the keys where they are mounted, and none of MPI's variables."""
    run = gang({"sshAuthMountPath": "/home/mpiuser/.ssh", "port": 2222}, worker=2)
    assert render_env(run, "worker", 1) == ReplicaEnv(
        {"K_MPI_JOB_ROLE": "worker"},
        (
            *("/usr/sbin/sshd", "-De", "-o", "StrictModes=no"),
            *("-o", "AuthorizedKeysFile=/home/mpiuser/.ssh/authorized_keys", "-p", "2222"),
        ),
    )
    assert "-p" not in render_env(gang(worker=1), "worker", 0).command


def test_ssh_finds_its_key_and_asks_nothing() -> None:
    """The image's own files say the rest, the port too unless the run does."""
    run = gang({"sshAuthMountPath": "/home/mpiuser/.ssh"}, worker=1)
    assert ssh(render_shared(run).files["ssh_config"]) == {
        "ConnectionAttempts": "10",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "IdentityFile": "/home/mpiuser/.ssh/id_rsa",
        "Include": "~/.ssh/config /etc/ssh/ssh_config",
    }
    assert ssh(render_shared(gang({"port": 22}, worker=1)).files["ssh_config"])["Port"] == "22"


@pytest.mark.parametrize(
    ("implementation", "searches"),
    [("OpenMPI", ()), ("Intel", ("pi.ml.svc.cluster.local",)), ("MPICH", ("pi.ml.svc.lan",))],
)
def test_the_hydras_call_back_to_a_bare_hostname(
    implementation: str, searches: tuple[str, ...]
) -> None:
    """Which takes a search domain: the cluster's own, or what most clusters have."""
    domain = "lan" if implementation == "MPICH" else ""
    shared = render_shared(gang({"implementation": implementation}, domain=domain, worker=1))
    assert shared.searches == searches
    assert shared.ssh_keys_at == "/root/.ssh"


def test_a_single_launcher_gets_no_variables() -> None:
    """mpirun then starts its processes where it is, without ssh."""
    assert render_env(gang(), "launcher", 0) == ReplicaEnv()
    assert render_shared(gang()) == SharedConfig()
    alone = gang({"launcherAsWorker": True, "slotsPerWorker": 8})
    assert render_shared(alone).files["hostfile"] == "pi-launcher-0.pi.ml.svc slots=8\n"


def test_a_large_hostfile_has_short_addresses_and_a_larger_one_is_refused() -> None:
    """A ConfigMap holds 1 MiB."""
    run = Gang("r" * 50, "n" * 63, "mpi", {"launcher": 1, "worker": 6_000})
    assert (
        render_shared(run).files["hostfile"].startswith(f"{run.short_host('worker', 0)} slots=1\n")
    )
    with pytest.raises(InvalidRun, match=r"^spec\.replicas: .*hostfile.* 9000 hosts"):
        render_shared(Gang("r" * 50, "ml", "mpi", {"launcher": 1, "worker": 9_000}))
