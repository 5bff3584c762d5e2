"""TF_CONFIG, by examples."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.errors import InvalidRun
from webhook.frameworks.framework import ReplicaEnv
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.tensorflow import TensorFlow, check, render_env

LIMIT = 96 * 1024


def gang(name: str = "mnist", **counts: int) -> Gang:
    """A TensorFlow run in namespace ml."""
    return Gang(name, "ml", "tensorflow", counts)


def config(run: Gang, role: str, index: int) -> Any:
    """The replica's TF_CONFIG, parsed."""
    return json.loads(render_env(run, role, index).env["TF_CONFIG"])


def test_a_replica_gets_the_cluster_and_its_task() -> None:
    """The first replica's task is chief: tf.distribute knows no master."""
    run = gang(master=1, worker=2, ps=1)
    assert config(run, "worker", 1) == {
        "cluster": {
            "chief": ["mnist-master-0.mnist.ml.svc:2222"],
            "worker": ["mnist-worker-0.mnist.ml.svc:2222", "mnist-worker-1.mnist.ml.svc:2222"],
            "ps": ["mnist-ps-0.mnist.ml.svc:2222"],
        },
        "environment": "cloud",
        "task": {"index": 1, "type": "worker"},
    }
    assert config(run, "master", 0)["task"] == {"index": 0, "type": "chief"}


@pytest.mark.parametrize("role", ["master", "chief"])
@pytest.mark.parametrize("kind", ["master", "chief"])
def test_the_run_says_what_the_first_task_is_called(role: str, kind: str) -> None:
    """Old Estimator code wants master, whatever the run calls the role."""
    options = TensorFlow.model_validate({"masterTaskType": kind})
    run = Gang("mnist", "ml", "tensorflow", {role: 1, "worker": 1}, options)
    told = config(run, role, 0)
    assert told["task"]["type"] == kind
    assert told["cluster"][kind] == [f"mnist-{role}-0.mnist.ml.svc:2222"]


def test_the_cluster_is_the_same_text_for_all() -> None:
    """A reader may compare it as it stands."""
    run = gang(chief=1, worker=3, ps=2)
    texts = {
        render_env(run, role, index).env["TF_CONFIG"].partition('"task"')[0]
        for role, count in run.counts.items()
        for index in range(count)
    }
    assert len(texts) == 1


def test_an_evaluator_is_listed_in_its_own_variable_alone() -> None:
    """It stands beside the cluster that trains."""
    run = gang(chief=1, worker=1, evaluator=1)
    own = config(run, "evaluator", 0)
    assert own["cluster"].pop("evaluator") == ["mnist-evaluator-0.mnist.ml.svc:2222"]
    assert own["cluster"] == config(run, "chief", 0)["cluster"]
    assert own["task"] == {"index": 0, "type": "evaluator"}


def test_a_single_replica_gets_no_variables() -> None:
    """TensorFlow then runs by itself."""
    assert render_env(gang(worker=1), "worker", 0) == ReplicaEnv()


def test_port_and_cluster_domain_are_in_every_address() -> None:
    """As the run and the installation say."""
    options = TensorFlow.model_validate({"port": 3333})
    run = Gang("a", "b", "tensorflow", {"worker": 2}, options, "example.internal")
    assert config(run, "worker", 0)["cluster"]["worker"][1] == (
        "a-worker-1.a.b.svc.example.internal:3333"
    )


def test_addresses_are_short_where_the_variable_would_be_large() -> None:
    """Over 64 KiB; for every replica alike, the evaluator too."""
    longest = largest(lambda count: "svc" in _variable(gang(worker=count)), 3_000)
    assert len(_variable(gang(worker=longest))) <= 64 * 1024
    short = gang(worker=longest + 1)
    assert _variable(short).startswith('{"cluster":{"worker":["mnist-worker-0.mnist:2222",')
    run = gang(chief=1, worker=longest, evaluator=1)
    for role in run.counts:
        assert "svc" not in render_env(run, role, 0).env["TF_CONFIG"]


def test_a_run_whose_variable_would_be_too_large_is_refused_whole(wording: Wording) -> None:
    """Every replica's, with what to do about it."""
    run = gang(chief=1, worker=5_000)
    for ask in (check, lambda run: render_env(run, "chief", 0)):
        with pytest.raises(InvalidRun) as refused:
            ask(run)
        [problem] = refused.value.problems
        assert problem.startswith("spec.replicas: ")
        mentions(problem, "TF_CONFIG", "5001 replicas", LIMIT, "fewer replicas", "shorter name")
    wording(problem)


def test_the_largest_variable_stays_within_the_limit() -> None:
    """The one of the replica with the longest task is what counts."""
    fits = largest(lambda count: not _refused(gang(worker=count)), 5_000)
    assert LIMIT - 40 < len(_variable(gang(worker=fits))) <= LIMIT


def test_a_shorter_name_is_a_cure() -> None:
    """The name stands twice in every address."""
    with pytest.raises(InvalidRun):
        check(gang("resnet50-on-imagenet", worker=2_800))
    check(gang("r", worker=2_800))


def largest(holds: Callable[[int], bool], below: int) -> int:
    """The largest number of workers for which it holds; for more of them it never does."""
    return bisect_left(range(below), True, lo=2, key=lambda count: not holds(count)) - 1


def _refused(run: Gang) -> bool:
    try:
        check(run)
    except InvalidRun:
        return True
    return False


def _variable(run: Gang) -> str:
    return render_env(run, "worker", run.counts["worker"] - 1).env["TF_CONFIG"]
