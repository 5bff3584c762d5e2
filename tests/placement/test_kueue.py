"""What Kueue has put into a pod: which pods, by which queue, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import decided, policy_set
from tests.wording import Wording, mentions
from webhook import names
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of

Json = dict[str, Any]
KEEP = {names.KUEUE: names.KUEUE_KEEP}
ADMISSION = f"{names.KUEUE_PREFIX}admission"


def pod(labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    """A pod of a run that Kueue has admitted, unless its labels are given."""
    marks = {names.KUEUE_PODSET: "main"} if labels is None else labels
    return {
        "metadata": {"labels": {names.RUN: "r", **marks}, "annotations": annotations or {}},
        "spec": {"containers": [], "nodeSelector": {"pool": "a"}, **spec},
    }


def by(manifest: Json) -> str:
    """Who admitted it, as messages say; "" if nobody has."""
    flavor = flavor_of(pods.parse_pod(manifest), pods.scheduling_gates(manifest), KEEP)
    return flavor.by if flavor else ""


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ([], "Kueue"),
        (["example.com/gate"], "Kueue"),
        ([names.KUEUE_TOPOLOGY_GATE], "Kueue"),
        ([ADMISSION], ""),
        ([names.KUEUE_TOPOLOGY_GATE, ADMISSION], ""),
        ([f"{names.KUEUE_PREFIX}elastic-job"], ""),
    ],
)
def test_what_waits_for_kueue_has_no_flavor_yet(gates: list[str], said: str) -> None:
    """But behind the topology's gate it has, and other gates are not Kueue's."""
    assert by(pod(schedulingGates=[{"name": gate} for gate in gates])) == said


def test_only_the_podset_says_that_a_pod_was_admitted() -> None:
    """A queue's name is on what waits, too; and an empty selector has nothing to keep."""
    assert not by(pod({names.KUEUE_QUEUE: "ml", f"{names.KUEUE_PREFIX}managed": "true"}))
    assert not by(pod({names.KUEUE_PODSET: ""}))
    assert not by(pod(nodeSelector={}))


def test_the_queue_is_named_as_well_as_the_pod_tells_it() -> None:
    """Its own label first, then the author's, then the workload; none steers a terminal."""
    podset = {names.KUEUE_PODSET: "main"}
    workload = {names.KUEUE_WORKLOAD: "job-\x1b[31m"}
    local, queue = {names.KUEUE_LOCAL_QUEUE: "l"}, {names.KUEUE_QUEUE: "q"}
    assert by(pod({**podset, **local, **queue}, workload)) == "Kueue (queue 'l')"
    assert by(pod({**podset, **queue}, workload)) == "Kueue (queue 'q')"
    assert by(pod(podset, workload)) == "Kueue (workload 'job-\\x1b[31m')"


@pytest.mark.parametrize(
    ("labels", "kept"), [({}, False), ({names.KUEUE: "true"}, False), (KEEP, True)]
)
def test_the_namespace_says_whether_it_is_kept(labels: dict[str, str], kept: bool) -> None:
    """By one word; the pod has no say in it."""
    manifest = pod({names.KUEUE_PODSET: "main", **KEEP})
    flavor = flavor_of(pods.parse_pod(manifest), frozenset(), labels)
    assert flavor is not None
    assert flavor.kept is kept


def test_what_no_policy_speaks_of_costs_nothing(wording: Wording) -> None:
    """A pod's author may write as many keys as a request holds: each would cost more than the last.

    Before, this took hours.
    """
    policies = policy_set(
        [document("PlacementPolicy", "p", {"overrides": {"nodeSelector": {"pool": "b"}}})]
    )
    manifest = pod(nodeSelector={"pool": "a", **{f"key-{at}": "a" for at in range(20_000)}})
    decision = decided(manifest, policies, kueue=True)
    (warning,) = decision.warnings
    mentions(warning, "policy p: nodeSelector[pool]: ", "wants 'b'", "kept 'a'", "Kueue")
    wording(warning)
