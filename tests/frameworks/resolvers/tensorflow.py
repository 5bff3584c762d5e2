"""What TensorFlow makes of TF_CONFIG.

Written from `TFConfigClusterResolver` (`tensorflow/python/distribute/cluster_resolver/
tfconfig_cluster_resolver.py`) and `_validate_cluster_spec` in `tensorflow/python/distribute/
multi_worker_util.py`. Not tried with TensorFlow itself: its wheel is some 600 MB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.frameworks.resolvers.view import Env, View, address

# tf.distribute's; `master` is an Estimator's, where `chief` would stand.
TASK_TYPES = ("chief", "worker", "ps", "evaluator")


def resolve(env: Env, _files: Mapping[str, str]) -> View | None:
    """The cluster that trains and the task in it; None where TensorFlow runs by itself."""
    config = json.loads(env.get("TF_CONFIG", "{}"))
    if "cluster" not in config:
        return None
    cluster, kind, index = config["cluster"], str(config["task"]["type"]), config["task"]["index"]
    assert kind in TASK_TYPES or (kind == "master" and "chief" not in cluster)
    assert kind in cluster, "a task has to be listed in the cluster that it is told"
    assert len(cluster.get("chief", [])) <= 1
    assert len(cluster.get("evaluator", [])) <= 1
    assert isinstance(index, int)
    assert 0 <= index < len(cluster[kind])
    evaluators = cluster.pop("evaluator", [])
    assert bool(evaluators) == (kind == "evaluator"), "it is in its own TF_CONFIG alone"
    assert list(config) == ["cluster", "environment", "task"]
    # That of TensorFlow before 1.4, for which anything else is one machine.
    assert config["environment"] == "cloud"
    listed = [*evaluators, *(each for some in cluster.values() for each in some)]
    hosts = [address(each)[0] for each in listed]
    assert len(set(hosts)) == len(hosts)
    return View(json.dumps(cluster), (kind, index), frozenset(hosts))
