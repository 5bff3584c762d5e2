"""What Dask makes of the variables.

Written from `collect_env` and `interpret_value` in `dask/config.py` of Dask 2026.8.0. Dask itself
gave the same settings; and a scheduler, a worker `--name $DASK_WORKER_NAME` and a `Client()` of
distributed 2026.8.0 found each other by them on one machine.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tests.frameworks.resolvers.view import Env, View, address


def settings(env: Env) -> dict[str, Any]:
    """Dask's settings, by the names that it uses."""
    found: dict[str, Any] = {}
    for name, value in env.items():
        if name.startswith("DASK_"):
            try:
                read = ast.literal_eval(value)
            except (SyntaxError, ValueError):
                read = value
            found[name[5:].lower().replace("__", ".").replace("_", "-")] = read
    return found


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The scheduler's address; a worker's name for its command line."""
    found = settings(env)
    scheme, _, rest = found["scheduler-address"].partition("://")
    assert scheme == "tcp"
    host, port = address(rest)
    return View((host, port), found.get("worker-name"), frozenset({host}))
