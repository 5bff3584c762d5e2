"""TensorFlow: TF_CONFIG.

Source: TensorFlow's `distribute/cluster_resolver/tfconfig_cluster_resolver.py` (the keys `cluster`
and `task`, with `type` and `index`) and `distribute/multi_worker_util.py`: the task types; a task
must be listed in its own cluster; at most one chief; worker 0 leads without a chief. Also
Kubeflow's training operator 1.8.1 (`pkg/controller.v1/tensorflow`: port 2222, no TF_CONFIG for one
replica).

`environment` is for TensorFlow before 1.4, whose default is a cluster of one machine.

The evaluator does not belong to the training cluster: only its own TF_CONFIG lists it. All other
replicas have identical clusters.

A run of workers ends when all of them have ended; TFJob by default checks only worker 0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webhook.errors import InvalidRun
from webhook.frameworks.framework import (
    MAX_VARIABLE,
    Framework,
    PolyaxonRuntime,
    ReplicaEnv,
    Roles,
    port_field,
    same_names,
)
from webhook.frameworks.native_default import native_default
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.frameworks.replica_group import Gang

NAME: Final = "TF_CONFIG"
EVALUATOR: Final = "evaluator"
LEADERS: Final = frozenset({"master", "chief"})
# Above this size, addresses are short, which depend on the pod's DNS search domains.
LONG: Final = 64 * 1024
PORT: Final = 2222


class _Clusters(NamedTuple):
    training: str
    evaluator: str


class TensorFlow(Strict):
    """TensorFlow's own settings."""

    master_task_type: Literal["chief", "master"] = native_default(
        "chief",
        "The task type of the first replica in TF_CONFIG. tf.distribute uses chief; "
        "old Estimator code needs master.",
    )
    port: int | None = port_field(PORT, "The port of every replica's server in TF_CONFIG.")


def render_env(gang: Gang, role: str, index: int) -> ReplicaEnv:
    """Return TF_CONFIG; empty for a single replica. Raises InvalidRun if it is too large."""
    if gang.size == 1:
        return ReplicaEnv()
    clusters = gang.cached(_clusters)
    cluster = clusters.evaluator if role == EVALUATOR else clusters.training
    return ReplicaEnv({NAME: _text(cluster, task_type(gang, role), index)})


def check(gang: Gang) -> None:
    """Raise InvalidRun if TF_CONFIG is too large, as `render_env` does."""
    if gang.size > 1:
        gang.cached(_clusters)


def task_type(gang: Gang, role: str) -> str:
    """Return a role's task type: chief for the leader, or master if the run sets that."""
    return gang.settings(TensorFlow).master_task_type if role in LEADERS else role


def _text(cluster: str, kind: str, index: int) -> str:
    task = f'{{"index":{index},"type":"{kind}"}}'
    return f'{{"cluster":{cluster},"environment":"cloud","task":{task}}}'


def _clusters(gang: Gang) -> _Clusters:
    clusters = _format_cluster(gang, gang.host)
    if _largest(gang, clusters) > LONG:
        clusters = _format_cluster(gang, gang.short_host)
    size = _largest(gang, clusters)
    if size > MAX_VARIABLE:
        problem = (
            f"spec.replicas: {NAME} lists all {gang.size} replicas and would have {size} bytes, "
            f"with addresses as short as {gang.short_host('worker', 0)}; {MAX_VARIABLE} "
            "are the most: give the run fewer replicas, or a shorter name"
        )
        raise InvalidRun([problem])
    return clusters


def _format_cluster(gang: Gang, host: Callable[[str, int], str]) -> _Clusters:
    listed = {
        task_type(gang, role): [f"{host(role, index)}:{gang.port}" for index in range(count)]
        for role, count in gang.counts.items()
    }
    training = {kind: hosts for kind, hosts in listed.items() if kind != EVALUATOR}
    return _Clusters(_compact(training), _compact(listed))


def _largest(gang: Gang, clusters: _Clusters) -> int:
    return max(
        len(_text(clusters.evaluator if role == EVALUATOR else clusters.training, role, count))
        for role, count in gang.counts.items()
    )


def _compact(cluster: object) -> str:
    return json.dumps(cluster, separators=(",", ":"))


FRAMEWORK: Final = Framework(
    name="tensorflow",
    title="TensorFlow",
    settings=TensorFlow,
    roles=Roles(
        ("master", "chief", "worker", "ps", "evaluator"),
        single=frozenset({"master", "chief", "evaluator"}),
        required=(("master", "chief", "worker"),),
        ends=("master", "chief", "worker"),
        newer={"chief": "master"},
    ),
    port=PORT,
    render_env=render_env,
    check=check,
    polyaxon={
        "tfjob": PolyaxonRuntime(
            "experiment", "tensorflow", same_names("chief", "worker", "ps", "evaluator")
        )
    },
)
