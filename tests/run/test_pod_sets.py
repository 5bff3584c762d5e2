"""The pod sets of a Run in a queue: its replicas that are placed alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.objects import an_object
from tests.run.runs import UID, Json, containers, spec_of
from tests.wording import mentions
from webhook import names
from webhook.run.model import Run
from webhook.run.model.intervals import parse_intervals
from webhook.run.plan import Plan, plan
from webhook.run.pod_sets import (
    MOST_POD_SETS,
    PodSet,
    Sampling,
    describe_changes,
    histories_at_start,
    sample_unplaced,
)
from webhook.run.queue_workload import pod_set_of, read_workload, sets_of_replicas

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
POOLS = ("spot", "on-demand", "big")


def planned(workers: int, status: Json | None = None, **worker: Any) -> Plan:
    """A Run of so many workers."""
    spec = {
        "replicas": {"worker": {"count": workers, **worker}},
        "template": spec_of(containers("main")),
    }
    found = an_object(names.API_VERSION, "Run", {"name": "train", "namespace": "lab"}, spec)
    found["metadata"]["uid"] = UID
    return plan(Run.model_validate({**found, "status": status or {}}))


def sampled(of: Plan, placed: Any, histories: Mapping[str, Any] | None = None) -> Sampling:
    """The sampling of a Run, whose pods admission places as `placed` says."""
    sampling = Sampling(of, histories or {})
    while replica := sampling.next():
        role, index, history = replica
        sampling.add(placed(of.pod(role, index, 0, history), index))
    return sampling


def stamped(pod: Json, pool: str, **stamp: Any) -> Json:
    """The pod, placed by policies into a pool."""
    text = json.dumps({"policies": {}, "set": "0123456789abcdef", **stamp})
    annotations = {**pod["metadata"]["annotations"], names.PLACEMENT: text}
    metadata = {**pod["metadata"], "annotations": annotations}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeSelector": {"pool": pool}}}


def stored(sets: list[PodSet], *, noted: bool = True) -> Any:
    """The Workload of these pod sets, as the API server has it; or that of an earlier version."""
    own = [each.noted for each in sets]
    for each in own if not noted else ():
        del each["template"]["metadata"]["annotations"]
    owner = {"apiVersion": names.API_VERSION, "kind": "Run", "name": "train", "uid": UID}
    metadata = {"name": "w", "namespace": "lab", "uid": "w", "resourceVersion": "1"}
    raw = {
        "metadata": {**metadata, "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"queueName": "ml", "podSets": own},
    }
    return read_workload(raw)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(POOLS)), min_size=1, max_size=8),
    st.sets(st.integers(0, 50)),
    st.sampled_from([None, *POOLS]),
)
def test_replicas_that_are_placed_alike_are_one_pod_set(
    shares: list[tuple[int, str]], more: set[int], leader: str | None
) -> None:
    """However a split, lists of indexes and leaders divide them: each replica is in that of its
    placement, and two sets of a role differ. The webhook tells where it may change."""
    pools = [pool for count, pool in shares for _ in range(count)]
    turns = sorted({at for at in range(1, len(pools)) if pools[at] != pools[at - 1]} | more)
    if leader:
        # By its role, which no turn tells of.
        pools[0] = leader
    of = planned(len(pools))
    tries = 0

    def placed(pod: Json, index: int) -> Json:
        nonlocal tries
        tries += 1
        return stamped(pod, pools[index], turns=turns)

    sets = sampled(of, placed).sets()
    found = {
        index: each.asks["template"]["spec"]["nodeSelector"]["pool"]
        for each in sets
        for index in each.indexes
    }
    assert [found[index] for index in range(len(pools))] == pools
    assert len(sets) == len(set(pools)) == len({each.name for each in sets})
    assert sets[0].name == "worker"
    assert tries <= len(turns) + 2
    assert not describe_changes(stored(sets), sets)
    workload = stored(sets)
    by_replica = sets_of_replicas(workload)
    for each in sets:
        names_of = {pod_set_of(workload, by_replica, "worker", index) for index in each.indexes}
        assert names_of == {each.name}
    assert [parse_intervals(each.indexes) for each in workload.pod_sets] == [
        {*each.indexes} for each in sets
    ]


def test_a_webhook_that_names_no_turn_leaves_the_leader_apart() -> None:
    """One of an earlier version."""
    sets = sampled(planned(5), lambda pod, index: stamped(pod, POOLS[index == 0])).sets()
    assert [(each.name, each.text) for each in sets] == [
        ("worker", "worker 0"),
        ("worker-1", "worker 1-4"),
    ]


def test_equal_overrides_are_one_pod_set() -> None:
    """Only what differs is a set of its own."""
    own = [{"index": at, "resources": {"requests": {"cpu": "4"}}} for at in (1, 3)]
    sets = sample_unplaced(planned(5, byIndex=own)).sets()
    assert [each.text for each in sets] == ["worker 0,2,4", "worker 1,3"]
    (container,) = sets[1].noted["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "4"}}
    assert "env" not in container
    assert names.KUEUE_QUEUE not in sets[1].noted["template"]["metadata"]["labels"]
    assert (sets[1].noted["name"], sets[1].noted["count"]) == ("worker-1", 2)


def test_more_pod_sets_than_kueue_takes_are_known_before_all_are_tried() -> None:
    tries = []

    def placed(pod: Json, index: int) -> Json:
        tries.append(index)
        return stamped(pod, f"pool-{index}", turns=[*range(100)])

    problem = sampled(planned(100), placed).problem()
    mentions(problem, f"{MOST_POD_SETS} sets of pods at most", "worker 0", "worker 8", "split")
    assert len(tries) == MOST_POD_SETS + 1


def test_replicas_that_gave_a_class_up_are_a_pod_set_of_their_own() -> None:
    """Each is tried with the history with which it would start now."""
    event = {"class": "spot", "time": "2026-11-30T11:00:00Z", "waitedSeconds": 600}
    history = [{"indexes": "1-2", "asOf": "2026-11-30T10:00:00Z", "events": [event]}]
    of = planned(4, {"replicas": {"worker": {"history": history}}})

    def placed(pod: Json, _index: int) -> Json:
        text = pod["metadata"]["annotations"].get(names.HISTORY)
        if not text:
            return stamped(pod, "spot", fallback={"spot": 600})
        assert json.loads(text)["events"] == [event]
        assert json.loads(text)["asOf"].startswith("2026-11-30T12:00:00")
        return stamped(pod, "on-demand", fallback={"spot": "2026-11-30T13:00:00Z"})

    sets = sampled(of, placed, histories_at_start(of.run, NOW)).sets()
    assert [(each.text, each.given_up) for each in sets] == [
        ("worker 0,3", frozenset()),
        ("worker 1-2", frozenset({"spot"})),
    ]
    assert [each.given_up for each in stored(sets).pod_sets] == [each.given_up for each in sets]


def test_a_history_of_which_policies_make_nothing_divides_no_pod_set() -> None:
    """The pod that was tried is tried again with its own history."""
    event = {"class": "spot", "time": "2026-11-30T11:00:00Z"}
    history = [{"indexes": "2", "asOf": "2026-11-30T10:00:00Z", "events": [event]}]
    of = planned(4, {"replicas": {"worker": {"history": history}}})
    histories = histories_at_start(of.run, NOW)
    (found,) = sampled(of, lambda pod, _: stamped(pod, "spot"), histories).sets()
    assert (found.text, found.tried, found.history) == ("worker 0-3", 0, "")


def test_what_is_placed_otherwise_than_before_is_named() -> None:
    """Of a Workload of an earlier version, counts alone are compared."""
    before = sampled(planned(4), lambda pod, _: stamped(pod, "spot")).sets()
    moved = sampled(planned(4), lambda pod, _: stamped(pod, "on-demand")).sets()
    split = sampled(planned(4), lambda pod, index: stamped(pod, POOLS[index == 0])).sets()
    mentions(describe_changes(stored(before), moved), "worker 0-3", "otherwise")
    mentions(describe_changes(stored(before), split), "worker 0, worker 1-3")
    mentions(describe_changes(stored(split), before), "worker 0-3")
    earlier = stored(before, noted=False)
    assert not describe_changes(earlier, moved)
    mentions(describe_changes(earlier, split), "worker 0, worker 1-3")
    assert sets_of_replicas(earlier) == {}
    assert pod_set_of(earlier, {}, "worker", 3) == "worker"
