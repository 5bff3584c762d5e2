"""What ps-lite makes of the variables.

Written from ps-lite's `src/postoffice.cc` and `src/van.cc` (all are required, the role is one of
three) and `src/zmq_van.h` (`DMLC_USE_KUBERNETES`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The scheduler's address and how many there are; places the scheduler gives out."""
    role = env["DMLC_ROLE"]
    assert role in ("scheduler", "server", "worker")
    root = env["DMLC_PS_ROOT_URI"], int(env["DMLC_PS_ROOT_PORT"])
    servers, workers = int(env["DMLC_NUM_SERVER"]), int(env["DMLC_NUM_WORKER"])
    assert servers > 0
    assert workers > 0
    # Otherwise the scheduler would bind the name under which others reach it.
    assert int(env["DMLC_USE_KUBERNETES"]) > 0
    return View((root, servers, workers), None, frozenset({root[0]}))
