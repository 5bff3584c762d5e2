"""What is known of runs, by their uid."""

from __future__ import annotations

from tests.controller.runs import UID, Json, raw_pod, raw_run, stored_run
from webhook.controller.observed_state import ObservedState
from webhook.run import observation
from webhook.run.observed import OwnedPod, Refusal


def pod(index: int, run_uid: str = UID) -> OwnedPod:
    found = observation.pod(raw_pod(index, run_uid=run_uid))
    assert found is not None
    return found


def test_what_a_run_owns_is_found_by_its_uid() -> None:
    """And nothing of another, though it be of the same name."""
    known = ObservedState()
    known.pods.replace({"lab/mnist-worker-0": pod(0), "lab/mnist-worker-1": pod(1, "other")})
    service: Json = {"metadata": raw_pod(0)["metadata"], "spec": {"selector": {"a": "b"}}}
    known.services.put("lab/mnist", known.services.keep(service))
    known.config_maps.put("lab/mnist-rendezvous", "other")
    observed = known.observed("lab", UID, (Refusal("a", "Failed", ""),))
    assert list(observed.pods) == ["mnist-worker-0"]
    assert (observed.service, observed.config_map, observed.deployment) == (True, False, None)
    assert [one.name for one in observed.refusals] == ["a"]
    assert known.pod_count("lab", UID) == 1


def test_a_deleted_pod_belongs_to_no_run() -> None:
    """The index follows the cache, a change of owner too."""
    known = ObservedState()
    known.pods.put("lab/mnist-worker-0", pod(0))
    known.pods.put("lab/mnist-worker-0", pod(0, "other"))
    assert (known.pod_count("lab", UID), known.pod_count("lab", "other")) == (0, 1)
    known.pods.put("lab/mnist-worker-0", None)
    assert known.observed("lab", "other").pods == {}


def test_a_deployment_is_known_with_its_run() -> None:
    """One of somebody else is not remembered at all."""
    known = ObservedState()
    metadata = {**raw_pod(0)["metadata"], "name": "lab"}
    known.deployments.put("lab/lab", known.deployments.keep({"metadata": metadata, "spec": {}}))
    deployment = known.observed("lab", UID).deployment
    assert deployment is not None
    assert deployment.uid == "uid-0"
    assert known.deployments.keep({"metadata": {"name": "x", "uid": "y"}}) is None


def test_a_runs_key_is_found_by_its_uid_as_long_as_it_is_there() -> None:
    """A Run made again under the same name is another."""
    known = ObservedState()
    known.runs.put("lab/mnist", stored_run())
    assert known.key_of(UID) == "lab/mnist"
    again = raw_run(version=8)
    again["metadata"]["uid"] = "second"
    known.runs.put("lab/mnist", known.runs.keep(again))
    assert (known.key_of(UID), known.key_of("second")) == (None, "lab/mnist")
    known.runs.put("lab/mnist", None)
    assert known.key_of("second") is None


def test_a_pod_of_another_namespace_belongs_to_no_run() -> None:
    """Whoever may make pods there must not have them counted here: a uid is no secret."""
    known = ObservedState()
    known.pods.put("lab/mnist-worker-0", pod(0))
    forged = observation.pod(raw_pod(0, uid="forged", namespace="elsewhere"))
    known.pods.put("elsewhere/mnist-worker-0", forged)
    assert known.observed("lab", UID).pods["mnist-worker-0"].uid == "uid-0"
    known.pods.put("elsewhere/mnist-worker-0", None)
    assert known.pod_count("lab", UID) == 1
