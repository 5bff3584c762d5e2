"""Which roles each framework knows, and what the end of each means to its run.

Roles, single ones, ports and the ends of runs are those of Kubeflow's training operator 1.8.1 and
mpi-operator 0.6.0 (`pkg/apis` and the validation beside it), for JAX those of 1.9.2; for Dask and
Ray those of their own operators, and a driver as in Fairlead's own contract. Where we differ:

- Runs of workers alone end when all of them have; TFJob looks at worker 0 only, unless told
  otherwise, and an elastic PyTorchJob ends with the first worker that does.
- An MXNet run ends with its workers; the scheduler, at whose end MXJob looks, ends just after them.
- A PaddleJob's Master is a parameter server. Ours leads, and servers have a role of their own.
- MPI workers are not required: the launcher may do all the work itself.

Order of start: an MPI launcher calls the workers by ssh. A Ray worker gives up after 20 s without
its head (`NUM_REDIS_GET_RETRIES` in `ray/_private/ray_constants.py`), a Dask client after 30 s
without its scheduler (`distributed.comm.timeouts.connect`), an XGBoost worker after some seconds
without the master's tracker (`dmlc_retry`), and none of it is a failure of the program. Dask's
workers wait as long as it takes, the others for minutes at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one framework.

    known: every role that a run may have, in the order in which replicas are listed.
    single: those of which a run has one replica at most.
    required: those without which the framework cannot start; of each tuple one is enough.
    ends: whose success is the run's; the first of these that the run has, all its replicas.
    after: a role -> the roles whose replicas must all run before its own are made, if there are
        any.
    port: where the replicas of the leading role listen, unless the run says otherwise.
    """

    known: tuple[str, ...]
    single: frozenset[str]
    required: tuple[tuple[str, ...], ...]
    ends: tuple[str, ...]
    port: int
    after: Mapping[str, tuple[str, ...]] | None = None


ROLES: Final[Mapping[str | None, Roles]] = {
    # A run of no framework is one pod, or some that know nothing of each other.
    None: Roles(("master", "worker"), frozenset({"master"}), (), ("master", "worker"), 2222),
    "tensorflow": Roles(
        ("master", "chief", "worker", "ps", "evaluator"),
        frozenset({"master", "chief", "evaluator"}),
        (("master", "chief", "worker"),),
        ("master", "chief", "worker"),
        2222,
    ),
    "pytorch": Roles(
        ("master", "worker"),
        frozenset({"master"}),
        (("master", "worker"),),
        ("master", "worker"),
        23456,
    ),
    "jax": Roles(("worker",), frozenset(), (("worker",),), ("worker",), 6666),
    "mpi": Roles(
        ("launcher", "worker"),
        frozenset({"launcher"}),
        (("launcher",),),
        ("launcher",),
        22,
        {"launcher": ("worker",)},
    ),
    "xgboost": Roles(
        ("master", "worker"),
        frozenset({"master"}),
        (("master",),),
        ("master",),
        9999,
        {"worker": ("master",)},
    ),
    "paddle": Roles(
        ("master", "server", "worker"),
        frozenset({"master"}),
        (("master", "worker"),),
        ("master", "worker"),
        36543,
    ),
    "mxnet": Roles(
        ("scheduler", "server", "worker"),
        frozenset({"scheduler"}),
        (("scheduler",), ("server",), ("worker",)),
        ("worker",),
        9091,
    ),
    "dask": Roles(
        ("scheduler", "worker", "driver"),
        frozenset({"scheduler", "driver"}),
        (("scheduler",),),
        ("driver", "scheduler"),
        8786,
        {"driver": ("scheduler",)},
    ),
    "spark": Roles(("driver",), frozenset({"driver"}), (("driver",),), ("driver",), 7078),
    "ray": Roles(
        ("head", "worker", "driver"),
        frozenset({"head", "driver"}),
        (("head",),),
        ("driver", "head"),
        6379,
        {"worker": ("head",), "driver": ("head",)},
    ),
}


def end_role(framework: str | None, roles: Mapping[str, object]) -> str:
    """The role of `roles` whose success is the run's."""
    return next((role for role in ROLES[framework].ends if role in roles), next(iter(roles)))
