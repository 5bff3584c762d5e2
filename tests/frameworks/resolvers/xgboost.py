"""What an XGBoost program makes of the variables.

Written from `CommGroup::Create` in XGBoost's `src/collective/comm_group.cc` (the names in capitals,
as arguments of CommunicatorContext), and from Kubeflow's example
`training-operator/examples/xgboost/smoke-dist` (the older ones). The guide's program, with XGBoost
3.2.0 and the variables of a master and two workers on one machine, had the ranks 0, 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View


def resolve(env: Env, _files: Mapping[str, str]) -> View:
    """The tracker, and this worker's id among the workers."""
    tracker = env["DMLC_TRACKER_URI"], int(env["DMLC_TRACKER_PORT"])
    workers, task = int(env["DMLC_NUM_WORKER"]), int(env["DMLC_TASK_ID"])
    assert (env["MASTER_ADDR"], int(env["MASTER_PORT"])) == tracker
    assert (int(env["WORLD_SIZE"]), int(env["RANK"])) == (workers, task)
    assert 0 <= task < workers
    return View((tracker, workers), task, frozenset({tracker[0]}), workers)
