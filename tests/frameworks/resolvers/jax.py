"""What jax.distributed.initialize makes of the variables, as the guide has a program call it.

Written from `State.initialize` in `jax/_src/distributed.py` of JAX 0.10.2. JAX itself was tried
with the variables of a run of three workers, the coordinator's name replaced by localhost: three
processes, each with its index.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View, address


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The address is JAX's own to read; count and id the program hands over."""
    coordinator = env["JAX_COORDINATOR_ADDRESS"]
    count, process = int(env["JAX_NUM_PROCESSES"]), int(env["JAX_PROCESS_ID"])
    assert 0 <= process < count
    older = (
        f"{env['COORDINATOR_ADDRESS']}:{env['COORDINATOR_PORT']}",
        int(env["NUM_PROCESSES"]),
        int(env["PROCESS_ID"]),
    )
    assert older == (coordinator, count, process)
    host, port = address(coordinator)
    return View((host, port, count), process, frozenset({host}), count)
