"""MPI: a hostfile for mpirun, and SSH from the launcher to the workers.

This follows Kubeflow's mpi-operator 0.6.0 (`pkg/controller/mpi_job_controller.go`), with additions.
Open MPI 5 reads PRRTE's variables (`src/runtime/prte_mca_params.c`, `plm_ssh_component.c`;
kubeflow/mpi-operator#842), and MPICH reads `HYDRA_LAUNCHER_EXTRA_ARGS` (Hydra's launchers). ssh
gets a configuration with its key and without prompts, which mpi-operator's images contain
themselves. The configuration is a file, because PRRTE passes ssh's arguments to its daemons only up
to the first `=` (observed in 5.0.11). Tested with Open MPI 5.0.11 and 4.1.8, MPICH 5.0.2 and
OpenSSH's `ssh -G`.

Only the launcher gets MPI's variables. A worker whose template has no command gets one, sshd.
`K_MPI_JOB_ROLE` is the role of both. A launcher that does not compute gets NVIDIA's variables
empty: an image that sets them to all GPUs of the node would otherwise get these without a request.

`discover_hosts.sh` prints the hosts whose pods exist, for elastic Horovod.

The roles are mpi-operator's, except that workers are optional: the launcher may do all the work
itself. Its pod is created when the workers run, because it calls them by ssh. The port is ssh's
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pydantic import Field

from webhook.errors import InvalidRun
from webhook.frameworks.framework import (
    FILES,
    MAX_CONFIG_MAP,
    SSH_AUTHORIZED_KEYS,
    SSH_PRIVATE_KEY,
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    SharedConfig,
    port_field,
    same_names,
)
from webhook.frameworks.native_default import native_default
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.frameworks.replica_group import Gang

HOSTFILE: Final = "hostfile"
SSH_CONFIG: Final = "ssh_config"
DISCOVER: Final = "discover_hosts.sh"
_PATH: Final = f"{FILES}/{HOSTFILE}"
SSH_OPTIONS: Final = f"-F {FILES}/{SSH_CONFIG}"
# The run's Service publishes a pod's address as soon as the pod has one.
_DISCOVER: Final = (
    "#!/bin/sh\n"
    f"sed 's/[ :].*//' {_PATH} | while read -r host; do\n"
    '  if getent hosts "$host" > /dev/null; then echo "$host"; fi\n'
    "done\n"
)
NO_DEVICES: Final = dict.fromkeys(("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"), "")
# mpi-operator's default too; the search domain needs the full name.
CLUSTER_DOMAIN: Final = "cluster.local"
PORT: Final = 22


class _Host(NamedTuple):
    role: str
    replica: int
    slots: int


def slots_field() -> int | None:
    """Return the field `slotsPerWorker` of settings with a hostfile."""
    slots: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Processes on each worker. Default: the GPUs of its main container's limits, "
        "else 1.",
    )
    return slots


def keys_field(description: str) -> str:
    """Return the field `sshAuthMountPath` of settings with SSH."""
    path: str = native_default("/root/.ssh", description, pattern=r"^/[^:]*$", max_length=1024)
    return path


class Mpi(Strict):
    """MPI's own settings."""

    implementation: Literal["OpenMPI", "Intel", "MPICH"] = native_default(
        "OpenMPI", "The MPI implementation, which determines the hostfile."
    )
    slots_per_worker: int | None = slots_field()
    ssh_auth_mount_path: str = keys_field(
        "Where the run's SSH keys are mounted in every replica's main container."
    )
    launcher_as_worker: bool = native_default(
        False, "True if the hostfile also contains the launcher's pod."
    )
    port: int | None = port_field(PORT, "The port of the workers' sshd.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:  # noqa: ARG001  workers are alike
    """Return hostfile and ssh options for a launcher, sshd for a worker, and the role of each."""
    settings, hosts = gang.settings(Mpi), gang.cached(_hosts)
    if not hosts:
        return ReplicaEnv()
    which = {"K_MPI_JOB_ROLE": role}
    if role == "worker":
        return ReplicaEnv(which, sshd_command(settings.ssh_auth_mount_path, settings.port))
    slot_counts = {host.slots for host in hosts}
    env = _VARIABLES[settings.implementation](slot_counts.pop() if len(slot_counts) == 1 else None)
    computes = settings.launcher_as_worker or any(gang.gpus("launcher"))
    return ReplicaEnv(which | env | ({} if computes else NO_DEVICES))


def render_shared(gang: Gang) -> SharedConfig:
    """Return the hostfile, SSH keys and configuration; nothing if no host is listed.

    In MPICH and Intel MPI the workers call the launcher by its bare hostname, which needs a search
    domain. Raises InvalidRun if the hostfile is too large for a ConfigMap.
    """
    settings, hosts = gang.settings(Mpi), gang.cached(_hosts)
    if not hosts:
        return SharedConfig()
    text = _hostfile(settings, hosts, gang.host)
    if len(text) > MAX_CONFIG_MAP:
        text = _hostfile(settings, hosts, gang.short_host)
    if len(text) > MAX_CONFIG_MAP:
        problem = (
            f"spec.replicas: the hostfile of {len(hosts)} hosts has {len(text)} bytes, with "
            f"addresses as short as {gang.short_host('worker', 0)}; a ConfigMap holds "
            f"{MAX_CONFIG_MAP}: give the run fewer workers, or a shorter name"
        )
        raise InvalidRun([problem])
    by_name = settings.implementation != "OpenMPI"
    domain = f"{gang.run}.{gang.namespace}.svc.{gang.cluster_domain or CLUSTER_DOMAIN}"
    return SharedConfig(
        {
            HOSTFILE: text,
            SSH_CONFIG: ssh_config(settings.ssh_auth_mount_path, settings.port),
            DISCOVER: _DISCOVER,
        },
        settings.ssh_auth_mount_path,
        (domain,) if by_name else (),
    )


def _hosts(gang: Gang) -> tuple[_Host, ...]:
    settings = gang.settings(Mpi)
    roles = ("launcher", "worker") if settings.launcher_as_worker else ("worker",)
    return tuple(
        _Host(role, index, settings.slots_per_worker or gpus or 1)
        for role in roles
        for index, gpus in enumerate(gang.gpus(role))
    )


def _hostfile(settings: Mpi, hosts: tuple[_Host, ...], address: Callable[[str, int], str]) -> str:
    line = "{} slots={}\n" if settings.implementation == "OpenMPI" else "{}:{}\n"
    return "".join(line.format(address(host.role, host.replica), host.slots) for host in hosts)


def ssh_config(keys: str, port: int | None) -> str:
    """Return ssh_config(5) for keys mounted at `keys`; the first value of an option applies.

    The image's own files set the other options. Without `port` they set the port too, because
    mpi-operator's images listen on 2222.
    """
    line = "" if port is None else f"    Port {port}\n"
    return (
        "Host *\n"
        # A worker's pod runs before its sshd listens.
        "    ConnectionAttempts 10\n"
        # Host keys come from the image, or are generated in each pod: they prove nothing.
        "    StrictHostKeyChecking no\n"
        "    UserKnownHostsFile /dev/null\n"
        "    LogLevel ERROR\n"
        f"    IdentityFile {keys}/{SSH_PRIVATE_KEY}\n"
        f"{line}"
        "    Include ~/.ssh/config /etc/ssh/ssh_config\n"
    )


def sshd_command(keys: str, port: int | None) -> tuple[str, ...]:
    """Return the sshd command for keys mounted at `keys`, on `port` or the image's own port."""
    listen = () if port is None else ("-p", str(port))
    file = f"AuthorizedKeysFile={keys}/{SSH_AUTHORIZED_KEYS}"
    # The directory of a mounted Secret is writable for all, which strict modes reject.
    return ("/usr/sbin/sshd", "-De", "-o", "StrictModes=no", "-o", file, *listen)


def _open_mpi(slots: int | None) -> dict[str, str]:
    """Return the variables of Open MPI up to 4 (ORTE), and the same for 5 (PRRTE)."""
    env = {
        "OMPI_MCA_orte_default_hostfile": _PATH,
        # Otherwise hosts are distinguished only by the first part of their names.
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_plm_rsh_args": SSH_OPTIONS,
        "PRTE_MCA_prte_default_hostfile": _PATH,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_plm_ssh_args": SSH_OPTIONS,
    }
    if slots is not None:
        env |= {
            "OMPI_MCA_orte_set_default_slots": str(slots),
            "PRTE_MCA_prte_set_default_slots": str(slots),
        }
    return env


def _intel(slots: int | None) -> dict[str, str]:
    env = {"I_MPI_HYDRA_HOST_FILE": _PATH, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_OPTIONS}
    return env if slots is None else env | {"I_MPI_PERHOST": str(slots)}


def _mpich(slots: int | None) -> dict[str, str]:  # noqa: ARG001  its hostfile has them
    return {"HYDRA_HOST_FILE": _PATH, "HYDRA_LAUNCHER_EXTRA_ARGS": SSH_OPTIONS}


_VARIABLES: Final[Mapping[str, Callable[[int | None], dict[str, str]]]] = {
    "OpenMPI": _open_mpi,
    "Intel": _intel,
    "MPICH": _mpich,
}


FRAMEWORK: Final = Framework(
    name="mpi",
    title="MPI",
    settings=Mpi,
    roles=Roles(
        ("launcher", "worker"),
        single=frozenset({"launcher"}),
        required=(("launcher",),),
        ends=("launcher",),
        after={"launcher": ("worker",)},
    ),
    port=PORT,
    render_env=render_env,
    render_shared=render_shared,
    polyaxon={"mpijob": PolyaxonRuntime("experiment", "mpi", same_names("launcher", "worker"))},
    commands={"worker": ()},
)
