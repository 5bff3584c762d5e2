"""Ray: the head's address.

`ray.init()` and `--address=auto` use `RAY_ADDRESS` (`ray/_private/worker.py`, `services.py`), and
so does `ray job submit` (`ray/dashboard/utils.py`; all read in 2.60.0). `ray start` reads no
variable: the head runs `ray start --head --port=$RAY_PORT`, a worker `ray start
--address=$RAY_ADDRESS`. `RAY_PORT` is KubeRay's name for the port.

`ray.init()` with host:port needs a Ray node in its own pod. A driver has none, so its RAY_ADDRESS
is that of Ray Client, whose server the head starts on port 10001. `RAY_API_SERVER_ADDRESS` is where
`ray job submit` finds the head's dashboard (port 8265).

The roles are those of KubeRay, plus the driver of Fairlead's contract. A worker tries to reach the
head for about 20 s, then fails (`NUM_REDIS_GET_RETRIES` in `ray/_private/ray_constants.py`). So
workers and drivers are created when the head runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks.framework import (
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    port_field,
    same_names,
)
from webhook.strict import Strict

if TYPE_CHECKING:
    from webhook.frameworks.replica_group import Gang

# Ray's own defaults: `ray/scripts/scripts.py` and DEFAULT_DASHBOARD_PORT in `ray_constants.py`.
CLIENT_PORT: Final = 10001
DASHBOARD_PORT: Final = 8265
PORT: Final = 6379


class Ray(Strict):
    """Ray's own settings."""

    port: int | None = port_field(PORT, "The head's port.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:  # noqa: ARG001  one of a role is as another
    """Return the head's address and port."""
    head = gang.host("head", 0)
    env = {"RAY_ADDRESS": f"{head}:{gang.port}", "RAY_PORT": str(gang.port)}
    if role == "driver":
        env |= {
            "RAY_ADDRESS": f"ray://{head}:{CLIENT_PORT}",
            "RAY_API_SERVER_ADDRESS": f"http://{head}:{DASHBOARD_PORT}",
        }
    return ReplicaEnv(env)


_START: Final = ("ray", "start")
_POLYAXON: Final = PolyaxonRuntime("job", "ray", same_names("head"), groups="workers")
FRAMEWORK: Final = Framework(
    name="ray",
    title="Ray",
    settings=Ray,
    roles=Roles(
        ("head", "worker", "driver"),
        single=frozenset({"head", "driver"}),
        required=(("head",),),
        ends=("driver", "head"),
        after={"worker": ("head",), "driver": ("head",)},
    ),
    port=PORT,
    render_env=render_env,
    polyaxon={"rayjob": _POLYAXON, "raycluster": _POLYAXON},
    commands={
        "head": (*_START, "--head", "--port=$(RAY_PORT)", "--dashboard-host=0.0.0.0", "--block"),
        "worker": (*_START, "--address=$(RAY_ADDRESS)", "--block"),
    },
)
