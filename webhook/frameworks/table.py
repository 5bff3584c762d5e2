"""The table of frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks import (
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
from webhook.frameworks.framework import ReplicaEnv, Roles, SharedConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.frameworks.framework import Framework, PolyaxonRuntime
    from webhook.frameworks.replica_group import Gang

# In the order of documentation, schemas and messages.
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
    # A run without a framework is one pod, or several independent ones.
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
    """Return the role of `roles` whose success is the run's success."""
    return next((role for role in ROLES[framework].ends if role in roles), next(iter(roles)))


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return the configuration of one replica; empty without a framework.

    Raises InvalidRun if there is none, as `render_shared` does for all replicas.
    """
    if gang.framework is None:
        return ReplicaEnv()
    return FRAMEWORKS[gang.framework].render_env(gang, role, index)


def render_shared(gang: Gang) -> SharedConfig:
    """Return the configuration that all replicas share.

    Raises InvalidRun if any replica cannot be configured, so call it first.
    """
    if gang.framework is None:
        return SharedConfig()
    framework = FRAMEWORKS[gang.framework]
    if framework.check is not None:
        framework.check(gang)
    return SharedConfig() if framework.render_shared is None else framework.render_shared(gang)
