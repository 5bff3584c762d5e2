"""The form in which each module of this package describes its framework.

A module holds everything that is particular to one framework: roles, port, settings, checks, the
variables and files of its replicas, and its names in other systems. Tables elsewhere are made of
`webhook.run.rendezvous.table`, which lists the modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.run.gang import Gang
    from webhook.strict import Problem, Strict

# Where a run's ConfigMap and its SSH keys are mounted in the main container.
FILES: Final = "/etc/fairlead"
# What the run's SSH keys are called there: the names that ssh looks for by itself, and those that
# Kubeflow's mpi-operator gives them.
SSH_PRIVATE_KEY: Final = "id_rsa"
SSH_PUBLIC_KEY: Final = "id_rsa.pub"
SSH_AUTHORIZED_KEYS: Final = "authorized_keys"
# Linux takes no argument or variable of 128 KiB (MAX_ARG_STRLEN); a quarter is left to spare.
MAX_VARIABLE: Final = 96 * 1024
# The most bytes of a ConfigMap (MaxSecretSize in Kubernetes' core/v1 types).
MAX_CONFIG_MAP: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReplicaEnv:
    """What one replica gets to find the others.

    env: variables for its main container, by name.
    command: what that container runs if its template names neither command nor args.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedConfig:
    """What all replicas of a run share beside variables.

    files: name -> text, kept in the run's ConfigMap and mounted read-only at FILES.
    ssh_keys_at: where the run's SSH keys are mounted, or "" if it has none.
    searches: DNS search domains that all pods need beside their own.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    ssh_keys_at: str = ""
    searches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one framework.

    known: every role that a run may have, in the order in which replicas are listed.
    single: those of which a run has one replica at most.
    required: those without which the framework cannot start; of each tuple one is enough.
    ends: whose success is the run's; the first of these that the run has, all its replicas.
    after: a role -> the roles whose replicas must all run before its own are made, if there are
        any.
    newer: a role -> the one that it replaces; a run has one of the two.
    """

    known: tuple[str, ...]
    single: frozenset[str]
    required: tuple[tuple[str, ...], ...]
    ends: tuple[str, ...]
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    newer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolyaxonRuntime:
    """One kind under `run` of a Polyaxon component.

    kind: the Run's. framework: the Run's, or "" for a single pod.
    roles: the role of a Run -> the field with its replicas.
    groups: the field whose replicas come in named groups, or "".
    """

    kind: str
    framework: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    groups: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that hold replicas."""
        return (*self.roles.values(), self.groups) if self.groups else tuple(self.roles.values())


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework, as its module describes it.

    name: the value of a Run's spec.framework, and the field of the spec with its settings.
    title: its name in prose.
    settings: the model of that field; its `port` replaces the default one.
    port: where the replicas of the leading role listen by default.
    render_env: a gang, a role and an index -> what that replica gets.
    render_shared: a gang -> what all its replicas share; None: nothing.
        Raises InvalidRun if no replica of this gang could be given what it needs.
    worker_zero_leads: whether worker 0 leads, since no role of the framework does.
    find_problems: the raw settings, of any type, and the number of all replicas -> what is wrong
        between the two, by paths below the spec.
    rules: the same in CEL, for the CustomResourceDefinition: expression, message, path.
    polyaxon: its kinds under `run` of a Polyaxon component, by name.
    """

    name: str
    title: str
    settings: type[Strict]
    roles: Roles
    port: int
    render_env: Callable[[Gang, str, int], ReplicaEnv]
    render_shared: Callable[[Gang], SharedConfig] | None = None
    worker_zero_leads: bool = False
    find_problems: Callable[[object, int], Iterator[Problem]] | None = None
    rules: tuple[tuple[str, str, str], ...] = ()
    polyaxon: Mapping[str, PolyaxonRuntime] = field(default_factory=dict)


def port_field(default: int, what: str) -> int | None:
    """The field `port` of a framework's settings; `what` says whose port it is."""
    port: int | None = Field(
        default=None, ge=1, le=65535, description=f"{what} Default: {default}."
    )
    return port


def same_names(*roles: str) -> dict[str, str]:
    """Roles that another system calls as we do.

    >>> same_names("master", "worker")
    {'master': 'master', 'worker': 'worker'}
    """
    return dict(zip(roles, roles, strict=True))
