"""The frameworks that a Run may name, and the tables made of their modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.rendezvous import (
    dask,
    deepspeed,
    jax,
    mpi,
    mxnet,
    paddle,
    pytorch,
    ray,
    spark,
    tensorflow,
    xgboost,
)
from webhook.run.rendezvous.framework import ReplicaEnv, Roles, SharedConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.run.gang import Gang
    from webhook.run.rendezvous.framework import Framework, PolyaxonRuntime

# In the order in which documentation, schemas and messages list them.
FRAMEWORKS: Final[Mapping[str, Framework]] = {
    framework.name: framework
    for framework in (
        tensorflow.FRAMEWORK,
        pytorch.FRAMEWORK,
        jax.FRAMEWORK,
        mpi.FRAMEWORK,
        xgboost.FRAMEWORK,
        paddle.FRAMEWORK,
        mxnet.FRAMEWORK,
        dask.FRAMEWORK,
        spark.FRAMEWORK,
        ray.FRAMEWORK,
        deepspeed.FRAMEWORK,
    )
}
ROLES: Final[Mapping[str | None, Roles]] = {
    # A run of no framework is one pod, or some that know nothing of each other.
    None: Roles(("master", "worker"), frozenset({"master"}), (), ("master", "worker")),
    **{name: framework.roles for name, framework in FRAMEWORKS.items()},
}
WORKER_ZERO_LEADS: Final = frozenset(
    name for name, framework in FRAMEWORKS.items() if framework.worker_zero_leads
)
# By the name of the kind under `run`.
POLYAXON_RUNTIMES: Final[Mapping[str, PolyaxonRuntime]] = {
    kind: runtime
    for framework in FRAMEWORKS.values()
    for kind, runtime in framework.polyaxon.items()
}


def end_role(framework: str | None, roles: Mapping[str, object]) -> str:
    """The role of `roles` whose success is the run's."""
    return next((role for role in ROLES[framework].ends if role in roles), next(iter(roles)))


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """What one replica gets to find the others; nothing in a run of no framework.

    Raises InvalidRun where there is no such thing, as `render_shared` does for all at once.
    """
    if gang.framework is None:
        return ReplicaEnv()
    return FRAMEWORKS[gang.framework].render_env(gang, role, index)


def render_shared(gang: Gang) -> SharedConfig:
    """What all replicas share beside variables.

    Raises InvalidRun if any replica cannot be given what it needs: call it first.
    """
    render = FRAMEWORKS[gang.framework].render_shared if gang.framework else None
    return SharedConfig() if render is None else render(gang)
