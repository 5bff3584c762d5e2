"""What Ray makes of the variables.

Written from Ray 2.60.0: `init` in `ray/_private/worker.py` (an address with a scheme is Ray
Client's), `canonicalize_bootstrap_address` in `ray/_private/services.py` (host:port),
`get_address_for_submission_client` in `ray/dashboard/utils.py`. `ray.init()` of 2.60.0 took either
form from the variable; no cluster was there for it to connect to.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View, address


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The head, whichever way this replica reaches it."""
    scheme, _, rest = env["RAY_ADDRESS"].rpartition("://")
    assert scheme in ("", "ray")
    host, port = address(rest)
    start = int(env["RAY_PORT"])
    assert scheme or port == start
    dashboard = env.get("RAY_API_SERVER_ADDRESS")
    if dashboard is not None:
        assert address(dashboard.removeprefix("http://"))[0] == host
    return View((host, start), None, frozenset({host}))
