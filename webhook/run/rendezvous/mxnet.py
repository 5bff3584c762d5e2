"""MXNet: where ps-lite's scheduler is, how many servers and workers there are, and what this is.

Read in ps-lite (`src/postoffice.cc`, `src/van.cc` and `src/zmq_van.h`: with
`DMLC_USE_KUBERNETES` the scheduler binds 0.0.0.0 rather than the name under which it is reached)
and in Kubeflow's training operator 1.8.1 (`pkg/controller.v1/mxnet/mxnet.go`). Our roles are
ps-lite's own words for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.run.gang import Told

if TYPE_CHECKING:
    from webhook.run.gang import Gang


def tell(gang: Gang, role: str, index: int) -> Told:  # noqa: ARG001  ps-lite counts them itself
    """The scheduler's address, the numbers of servers and workers, and the replica's role."""
    return Told(
        {
            "DMLC_PS_ROOT_URI": gang.host("scheduler", 0),
            "DMLC_PS_ROOT_PORT": str(gang.port),
            "DMLC_NUM_SERVER": str(gang.counts.get("server", 0)),
            "DMLC_NUM_WORKER": str(gang.counts.get("worker", 0)),
            "DMLC_ROLE": role,
            "DMLC_USE_KUBERNETES": "1",
        }
    )
