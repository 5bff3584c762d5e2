"""Which module tells the replicas of which framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.gang import Shared, Told
from webhook.run.rendezvous import (
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.run.gang import Gang

_TELL: Final[Mapping[str, Callable[[Gang, str, int], Told]]] = {
    "tensorflow": tensorflow.tell,
    "pytorch": pytorch.tell,
    "jax": jax.tell,
    "mpi": mpi.tell,
    "xgboost": xgboost.tell,
    "paddle": paddle.tell,
    "mxnet": mxnet.tell,
    "dask": dask.tell,
    "spark": spark.tell,
    "ray": ray.tell,
}
_SHARE: Final[Mapping[str, Callable[[Gang], Shared]]] = {
    "tensorflow": tensorflow.share,
    "pytorch": pytorch.share,
    "mpi": mpi.share,
}


def tell(gang: Gang, role: str, index: int) -> Told:
    """What one replica is told; nothing in a run of no framework.

    Raises InvalidRun where the run cannot be told, as `share` does for all replicas at once.
    """
    if gang.framework is None:
        return Told()
    return _TELL[gang.framework](gang, role, index)


def share(gang: Gang) -> Shared:
    """What all replicas share beside variables.

    Raises InvalidRun if any replica cannot be told what it has to know: call it first.
    """
    share = _SHARE.get(gang.framework or "")
    return Shared() if share is None else share(gang)
