"""A run's replicas as their framework sees them."""

from __future__ import annotations

from webhook.frameworks.jax import Jax
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.tensorflow import TensorFlow

GANG = Gang("mnist", "ml", "pytorch", {"master": 1, "worker": 3}, cluster_domain="cluster.local")


def test_ranks_go_role_by_role() -> None:
    """In the framework's order, from 0."""
    ranks = [GANG.rank(role, index) for role, n in GANG.counts.items() for index in range(n)]
    assert ranks == [0, 1, 2, 3]
    assert GANG.leader == GANG.host("master", 0)


def test_addresses_are_those_of_pods_under_the_runs_service() -> None:
    """The cluster's domain is there where it is configured; the short form is for neighbours."""
    assert GANG.host("worker", 2) == "mnist-worker-2.mnist.ml.svc.cluster.local"
    assert GANG.short_host("worker", 2) == "mnist-worker-2.mnist"


def test_settings_are_the_runs_or_the_models_defaults() -> None:
    """Another framework's are none."""
    own = Jax.model_validate({"port": 5})
    assert Gang("a", "b", "jax", {"worker": 1}, own).settings(Jax) is own
    assert Gang("a", "b", "jax", {"worker": 1}, own).settings(TensorFlow) == TensorFlow()
    assert Gang("a", "b", "jax", {"worker": 1}).settings(Jax) == Jax()


def test_the_port_is_the_runs_or_the_frameworks() -> None:
    """As rendezvous has it by default."""
    own = Jax.model_validate({"port": 5})
    assert Gang("a", "b", "jax", {"worker": 1}, own).port == 5
    assert Gang("a", "b", "jax", {"worker": 1}).port == 6666


def test_gpus_are_counted_by_replica() -> None:
    """None where nothing is known of them, and nobody where the role is not there."""
    gang = Gang("a", "b", "mpi", {"launcher": 1, "worker": 2}, devices={"worker": (4, 8)})
    assert (gang.gpus("launcher"), gang.gpus("worker"), gang.gpus("ps")) == ((0,), (4, 8), ())


def test_common_variables_are_made_once_per_gang() -> None:
    """Else telling a thousand replicas would take time with the square of their number."""
    made = []

    def make(gang: Gang) -> str:
        made.append(gang)
        return gang.run

    first, second = Gang("a", "b", None, {"master": 1}), Gang("c", "d", None, {"master": 1})
    assert [gang.cached(make) for gang in (first, second, first, second)] == ["a", "c", "a", "c"]
    assert made == [first, second]
