"""What mpirun and ssh make of the launcher's variables and files.

Written from Open MPI's page orte_hosts(7) (`host slots=n`), the Hydra of MPICH (`-f`: `host:n`;
arguments for the launcher are split at spaces), and ssh_config(5). mpirun of Open MPI 5.0.11 and
4.1.8 and of MPICH 5.0.2, with a script in the place of ssh, called every host of the file with the
arguments given; `ssh -G` of OpenSSH 9.2 took the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View, opened

OPEN_MPI = ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args")
OPEN_MPI_5 = ("PRTE_MCA_prte_default_hostfile", "PRTE_MCA_plm_ssh_args")
INTEL = ("I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS")
MPICH = ("HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXTRA_ARGS")


def resolve(env: Env, files: Mapping[str, str]) -> View | None:
    """The hosts that mpirun starts processes on; None where it would start them here alone."""
    if not set(env) - {"K_MPI_JOB_ROLE"}:
        return None
    read = [pair for pair in (OPEN_MPI, OPEN_MPI_5, INTEL, MPICH) if pair[0] in env]
    assert read in ([OPEN_MPI, OPEN_MPI_5], [INTEL], [MPICH])
    ways = {(env[file], env[arguments]) for file, arguments in read}
    assert len(ways) == 1
    [(path, arguments)] = ways
    flag, config = arguments.split(" ")
    assert flag == "-F"
    ssh(opened(config, files))
    slots = hostfile(opened(path, files), colon=read[0] != OPEN_MPI)
    return View((slots, config), None, frozenset(host for host, _ in slots))


def hostfile(text: str, *, colon: bool) -> tuple[tuple[str, int], ...]:
    """Each host with its slots."""
    lines = [line.partition(":" if colon else " slots=") for line in text.splitlines()]
    slots = tuple((host, int(count)) for host, _, count in lines)
    assert all(count > 0 for _, count in slots)
    assert len(dict(slots)) == len(slots)
    return slots


def ssh(text: str) -> dict[str, str]:
    """The options of a configuration that has one block, for all hosts."""
    first, *rest = text.splitlines()
    assert first == "Host *"
    return {key: value for key, _, value in (line.strip().partition(" ") for line in rest)}
