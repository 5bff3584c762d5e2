"""The resolvers by framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.run.rendezvous.resolvers import (
    dask,
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
from tests.run.rendezvous.resolvers.view import Env, View

RESOLVERS: dict[str, Callable[[Env, Mapping[str, str]], View | None]] = {
    "tensorflow": tensorflow.resolve,
    "pytorch": pytorch.resolve,
    "jax": jax.resolve,
    "mpi": mpi.resolve,
    "xgboost": xgboost.resolve,
    "paddle": paddle.resolve,
    "mxnet": mxnet.resolve,
    "dask": dask.resolve,
    "spark": spark.resolve,
    "ray": ray.resolve,
}
