"""MPI: a hostfile for the launcher's mpirun, and SSH by which it reaches the workers.

As Kubeflow's mpi-operator 0.6.0 does it (`pkg/controller/mpi_job_controller.go`), with what it
lacks: Open MPI 5 reads PRRTE's variables (`src/runtime/prte_mca_params.c`, `plm_ssh_component.c`;
kubeflow/mpi-operator#842), MPICH reads `HYDRA_LAUNCHER_EXTRA_ARGS` (`external_common_launch.c`),
and ssh is told by its arguments not to ask about host keys, where mpi-operator's images have it in
their ssh_config. Tried with Open MPI 5.0.11 and 4.1.8 and with MPICH 5.0.2.

Only the launcher gets variables. A worker is told a command, sshd, for a template without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.errors import InvalidRun
from webhook.run.gang import FILES, SSH_AUTHORIZED_KEYS, SSH_PRIVATE_KEY, Shared, Told
from webhook.run.model.frameworks import Mpi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.run.gang import Gang

HOSTFILE: Final = "hostfile"
PATH: Final = f"{FILES}/{HOSTFILE}"
# A ConfigMap holds no more (MaxSecretSize in Kubernetes' core/v1 types).
LIMIT: Final = 1024 * 1024
# What mpi-operator assumes as well; the search domain must be written out.
CLUSTER_DOMAIN: Final = "cluster.local"


class _Host(NamedTuple):
    role: str
    replica: int
    slots: int


def tell(gang: Gang, role: str, index: int) -> Told:  # noqa: ARG001  workers are alike
    """The launcher: the hostfile and how to use ssh. A worker: sshd."""
    own, hosts = gang.settings(Mpi), gang.once(_hosts)
    if not hosts:
        return Told()
    if role == "worker":
        return Told(command=_sshd(own))
    each = {host.slots for host in hosts}
    return Told(_VARIABLES[own.implementation](_ssh(own), each.pop() if len(each) == 1 else None))


def share(gang: Gang) -> Shared:
    """The hostfile and the SSH keys; nothing if no host is listed.

    MPICH and Intel MPI have the workers call back to the launcher by its bare hostname, which
    takes a search domain. Raises InvalidRun if the hostfile is too large for a ConfigMap.
    """
    own, hosts = gang.settings(Mpi), gang.once(_hosts)
    if not hosts:
        return Shared()
    text = _hostfile(own, hosts, gang.host)
    if len(text) > LIMIT:
        text = _hostfile(own, hosts, gang.short_host)
    if len(text) > LIMIT:
        problem = (
            f"spec.replicas: the hostfile of {len(hosts)} hosts has {len(text)} bytes, with "
            f"addresses as short as {gang.short_host('worker', 0)}; a ConfigMap holds {LIMIT}: "
            "give the run fewer workers, or a shorter name"
        )
        raise InvalidRun([problem])
    by_name = own.implementation != "OpenMPI"
    domain = f"{gang.run}.{gang.namespace}.svc.{gang.cluster_domain or CLUSTER_DOMAIN}"
    return Shared({HOSTFILE: text}, own.ssh_auth_mount_path, (domain,) if by_name else ())


def _hosts(gang: Gang) -> tuple[_Host, ...]:
    own = gang.settings(Mpi)
    roles = ("launcher", "worker") if own.launcher_as_worker else ("worker",)
    return tuple(
        _Host(role, index, own.slots_per_worker or gpus or 1)
        for role in roles
        for index, gpus in enumerate(gang.gpus(role))
    )


def _hostfile(own: Mpi, hosts: tuple[_Host, ...], address: Callable[[str, int], str]) -> str:
    line = "{} slots={}\n" if own.implementation == "OpenMPI" else "{}:{}\n"
    return "".join(line.format(address(host.role, host.replica), host.slots) for host in hosts)


def _ssh(own: Mpi) -> str:
    """ssh's arguments; MPI splits them at spaces."""
    arguments = [
        # The worker's container runs before its sshd listens.
        "-o ConnectionAttempts=10",
        # Hosts' keys are the image's, or made anew in each pod: they prove nothing.
        "-o StrictHostKeyChecking=no",
        "-o UserKnownHostsFile=/dev/null",
        "-o LogLevel=ERROR",
        f"-i {own.ssh_auth_mount_path}/{SSH_PRIVATE_KEY}",
    ]
    if own.port is not None:
        # Else the image's ssh_config has its say.
        arguments.append(f"-p {own.port}")
    return " ".join(arguments)


def _sshd(own: Mpi) -> tuple[str, ...]:
    port = () if own.port is None else ("-p", str(own.port))
    keys = f"AuthorizedKeysFile={own.ssh_auth_mount_path}/{SSH_AUTHORIZED_KEYS}"
    # A mounted Secret's folder may be written by all, which strict modes forbid.
    return ("/usr/sbin/sshd", "-De", "-o", "StrictModes=no", "-o", keys, *port)


def _open_mpi(ssh: str, slots: int | None) -> dict[str, str]:
    """Open MPI up to 4 (ORTE), and the twins that 5 reads (PRRTE)."""
    env = {
        "OMPI_MCA_orte_default_hostfile": PATH,
        # Without it hosts are told apart by the first part of their names alone.
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_plm_rsh_args": ssh,
        "PRTE_MCA_prte_default_hostfile": PATH,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_plm_ssh_args": ssh,
    }
    if slots is not None:
        env |= {
            "OMPI_MCA_orte_set_default_slots": str(slots),
            "PRTE_MCA_prte_set_default_slots": str(slots),
        }
    return env


def _intel(ssh: str, slots: int | None) -> dict[str, str]:
    env = {"I_MPI_HYDRA_HOST_FILE": PATH, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": ssh}
    return env if slots is None else env | {"I_MPI_PERHOST": str(slots)}


def _mpich(ssh: str, slots: int | None) -> dict[str, str]:  # noqa: ARG001  its hostfile has them
    return {"HYDRA_HOST_FILE": PATH, "HYDRA_LAUNCHER_EXTRA_ARGS": ssh}


_VARIABLES: Final[Mapping[str, Callable[[str, int | None], dict[str, str]]]] = {
    "OpenMPI": _open_mpi,
    "Intel": _intel,
    "MPICH": _mpich,
}
