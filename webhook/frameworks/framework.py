"""The description of a framework, which each module of this package provides.

A module defines everything that is specific to one framework: roles, port, settings, checks, the
variables and files of its replicas, and its names in other systems. Other tables are computed from
`webhook.frameworks.table`, which lists the modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.frameworks.replica_group import Gang
    from webhook.strict import Problem, Strict

# Mount paths of a run's ConfigMap and SSH keys in the main container.
FILES: Final = "/etc/fairlead"
# File names of the SSH keys: the defaults of ssh, and the names of Kubeflow's mpi-operator.
SSH_PRIVATE_KEY: Final = "id_rsa"
SSH_PUBLIC_KEY: Final = "id_rsa.pub"
SSH_AUTHORIZED_KEYS: Final = "authorized_keys"
# Linux limits an argument or variable to 128 KiB (MAX_ARG_STRLEN); this leaves a quarter free.
MAX_VARIABLE: Final = 96 * 1024
# Maximum bytes of a ConfigMap (MaxSecretSize in Kubernetes' core/v1 types).
MAX_CONFIG_MAP: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReplicaEnv:
    """The configuration by which one replica finds the others.

    env: variables for its main container, by name.
    command: the command of that container if its template sets neither command nor args.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedConfig:
    """The configuration that all replicas of a run share, apart from variables.

    files: name -> text, stored in the run's ConfigMap and mounted read-only at FILES.
    ssh_keys_at: the mount path of the run's SSH keys, or "" without keys.
    searches: additional DNS search domains of all pods.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    ssh_keys_at: str = ""
    searches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one framework.

    names: every valid role, in the order in which replicas are listed.
    single: roles with at most one replica.
    required: roles without which the framework cannot start; one of each tuple is enough.
    ends: roles whose success is the run's success; the first that the run has counts, with all its
    replicas.
    after: a role -> the roles (if present) whose replicas must all run before its own are created.
    newer: a role -> the role that it replaces; a run has one of the two.
    """

    names: tuple[str, ...]
    single: frozenset[str]
    required: tuple[tuple[str, ...], ...]
    ends: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    newer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolyaxonRuntime:
    """One kind under `run` of a Polyaxon component.

    kind: the Run's. framework: the Run's, or "" for a single pod.
    roles: the Run's role -> the field with its replicas.
    groups: the field with named groups of replicas, or "".
    """

    kind: str
    framework: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    groups: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields with replicas."""
        return (*self.roles.values(), self.groups) if self.groups else tuple(self.roles.values())


@dataclass(frozen=True, slots=True)
class Framework:
    """The description of one framework.

    name: the value of a Run's spec.framework, and the field of the spec with its settings.
    title: its name in prose.
    settings: the model of that field; its `port` replaces the default one.
    port: the default port of the replicas of the leading role.
    render_env: gang, role and index -> the configuration of that replica.
    check: raises InvalidRun if the gang cannot be configured.
    render_shared: gang -> the configuration that its replicas share, which also raises InvalidRun.
    None: they share none, so that no Run of the framework has a ConfigMap or a Secret.
    worker_zero_leads: True if worker 0 leads, because no role of the framework does.
    find_problems: the raw settings, of any type, and the number of all replicas -> problems between
    the two, with paths below the spec.
    rules: the same in CEL, for the CustomResourceDefinition: expression, message, path.
    polyaxon: its kinds under `run` of a Polyaxon component, by name.
    commands: the roles that run a program of the framework, with its command; empty: that of
    `render_env`. The program of a run's author is that of the other roles.
    """

    name: str
    title: str
    settings: type[Strict]
    roles: Roles
    port: int
    render_env: Callable[[Gang, str, int], ReplicaEnv]
    check: Callable[[Gang], None] | None = None
    render_shared: Callable[[Gang], SharedConfig] | None = None
    worker_zero_leads: bool = False
    find_problems: Callable[[object, int], Iterator[Problem]] | None = None
    rules: tuple[tuple[str, str, str], ...] = ()
    polyaxon: Mapping[str, PolyaxonRuntime] = field(default_factory=dict)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def port_field(default: int, what: str) -> int | None:
    """Return the field `port` of a framework's settings; `what` describes the port."""
    port: int | None = Field(
        default=None, ge=1, le=65535, description=f"{what} Default: {default}."
    )
    return port


def same_names(*roles: str) -> dict[str, str]:
    """Return a mapping for roles that have the same name in another system.

    >>> same_names("master", "worker")
    {'master': 'master', 'worker': 'worker'}
    """
    return dict(zip(roles, roles, strict=True))
