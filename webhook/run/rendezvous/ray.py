"""Ray: where the head is.

`RAY_ADDRESS` is what `ray.init()` and `--address=auto` use (`ray/_private/worker.py`,
`services.py`; `ray job submit` too, `ray/dashboard/utils.py`; all read in 2.60.0). `ray start`
looks at no variable by itself: the head runs `ray start --head --port=$RAY_PORT`, a worker
`ray start --address=$RAY_ADDRESS`. `RAY_PORT` is KubeRay's name for the port.

`ray.init()` with host:port wants a Ray node in its own pod. A driver has none, so its RAY_ADDRESS
is that of Ray Client, whose server the head starts on port 10001; and `RAY_API_SERVER_ADDRESS` is
where `ray job submit` finds the head's dashboard (port 8265).

A worker tries for some 20 s to reach the head, then fails: it is made when the head runs
(`webhook.run.roles`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.gang import Told

if TYPE_CHECKING:
    from webhook.run.gang import Gang

# Ray's own defaults: `ray/scripts/scripts.py` and DEFAULT_DASHBOARD_PORT in `ray_constants.py`.
CLIENT_PORT: Final = 10001
DASHBOARD_PORT: Final = 8265


def tell(gang: Gang, role: str, index: int) -> Told:  # noqa: ARG001  one of a role is as another
    """The head's address and port."""
    head = gang.host("head", 0)
    env = {"RAY_ADDRESS": f"{head}:{gang.port}", "RAY_PORT": str(gang.port)}
    if role == "driver":
        env |= {
            "RAY_ADDRESS": f"ray://{head}:{CLIENT_PORT}",
            "RAY_API_SERVER_ADDRESS": f"http://{head}:{DASHBOARD_PORT}",
        }
    return Told(env)
