"""One run in virtual time: what nodes do to it, and what policies make of that."""

from __future__ import annotations

import math
from collections import Counter
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.examples import examples
from tests.simulation.scenes import SPOT, on_spot, played, policies, run_of, scenario, told
from tests.wording import mentions
from webhook.simulation import play

CHEAP: dict[str, Any] = {"name": "cheap", "labels": SPOT, "nodes": 10, "price": 0.25, "boot": "1m"}
SOLID: dict[str, Any] = {"name": "solid", "nodes": 10, "boot": "3m"}
FALLBACK = {"afterPending": "20m", "returnAfter": "1h"}


def pools(**spot: Any) -> list[dict[str, Any]]:
    return [{**CHEAP, **spot}, SOLID]


def test_without_interruptions_a_run_takes_its_work() -> None:
    """And the time until its nodes are there; it costs what its nodes do."""
    (ending,) = played(on_spot(), scenario(pools()))
    assert (ending.phase, ending.seconds, ending.incidents) == ("Succeeded", 36_060.0, 0)
    assert ending.nodes == {"cheap": 40.0}
    assert (ending.cost, ending.lost) == (10.0, 0.0)
    assert ending.waiting == pytest.approx(4 / 60)


@pytest.mark.property
@pytest.mark.parametrize(("hours", "replicas"), [(8, 1), (40, 4), (24, 8)])
def test_the_mean_time_is_that_of_young_and_daly(hours: int, replicas: int) -> None:
    """On one pool with exponential lifetimes.

    J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006:
    M e^(R/M) (e^(t/M) - 1) W/t, for checkpoints that take no time. A new node takes a minute, and
    the restart ten; the controller spreads restarts over two seconds.
    """
    repeat = examples(150)
    spot = {**CHEAP, "lifetime": f"{hours}h", "nodes": 100}
    program = {"work": "30h", "checkpoint": "30m", "restart": "10m"}
    run = run_of(replicas={"worker": {"count": replicas}}, backoffLimit=1000)
    endings = played(on_spot(), scenario([spot], program=program), repeat=repeat, run=run)
    assert {each.phase for each in endings} == {"Succeeded"}
    found = [each.seconds / 3600 for each in endings]
    mean, again, between = hours / replicas, (11 * 60 + 1) / 3600, 0.5
    daly = mean * math.exp(again / mean) * math.expm1(between / mean) * 30 / between
    # An error of four standard errors is seen once in 16,000 times.
    assert abs(fmean(found) - daly) < 4 * stdev(found) / math.sqrt(repeat) + 0.01 * daly


def test_a_lost_node_costs_what_was_done_since_the_checkpoint() -> None:
    """All replicas start again, on the nodes that are there and a new one."""
    events = [{"at": "1h16m", "lose": 1}]
    (ending,) = played(on_spot(), scenario(pools(events=events)))
    # 75 minutes after the start, two checkpoints are there; the new node takes a minute.
    assert ending.incidents == 1
    assert ending.seconds == pytest.approx(36_060 + 15 * 60 + 60, abs=5)
    assert ending.lost == pytest.approx(4 * 15 / 60 + 3 / 60, abs=0.02)


def test_a_class_that_is_sold_out_is_given_up_and_returned_to() -> None:
    """After the policy's time, for all replicas; at the next start after its end they return."""
    sold_out = [{"at": "0s", "soldOut": "30m"}]
    lost = [{"at": "3h", "lose": 1}]
    spec = [{**CHEAP, "events": sold_out}, {**SOLID, "events": lost}]
    (ending,) = played(on_spot(fallback=FALLBACK), scenario(spec))
    assert ending.phase == "Succeeded"
    began = Counter(each for each in told(ending) if "runs in" in each[1])
    first = [(at, what) for at, what in sorted(began) if at < 3600]
    assert {at for at, _ in first} == {20 * 60 + 3 * 60}
    assert {what.rpartition(" ")[2] for _, what in first} == {"solid"}
    later = [what.rpartition(" ")[2] for at, what in sorted(began) if at > 3 * 3600]
    assert later == ["cheap"] * 4
    gave_up = [each.what for each in ending.happenings if each.what.startswith("GaveUpClass")]
    assert len(gave_up) == 1


def test_a_run_whose_own_terms_exclude_a_class_does_not_get_out_of_it() -> None:
    """It waits for the class, and says why."""
    spec = {"nodeSelector": {"zone": "b"}, "containers": [{"name": "main", "image": "x"}]}
    run = run_of(template={"spec": spec})
    there = [CHEAP, {**SOLID, "labels": {"zone": "b"}}]
    (ending,) = played(on_spot(fallback=FALLBACK), scenario(there, limit="5h"), run=run)
    assert ending.phase == "Pending"
    assert ending.waiting == pytest.approx(20.0)
    mentions(ending.reason, "class spot", "nodeSelector zone=b")


def test_a_run_without_nodes_reaches_the_limit() -> None:
    """With what it waits for."""
    text = scenario([SOLID], limit="5h")
    (ending,) = played(on_spot(), text)
    assert (ending.phase, ending.seconds) == ("Pending", 5 * 3600)
    assert "none" in ending.reason
    assert ending.waiting == pytest.approx(20.0)


def test_a_pod_that_is_rejected_ends_nothing() -> None:
    """Its run waits, and says why."""
    files = policies({"nodeSelector": {"zone": "a"}})
    files["b.yaml"] = files["a.yaml"].split(b"---")[1].replace(b"overrides", b"requirements")
    files["b.yaml"] = (
        files["b.yaml"].replace(b'"a"}}}}', b'"b"}}}}').replace(b'"name": "a"', b'"name": "b"')
    )
    spec = {"nodeSelector": {"zone": "c"}, "containers": [{"name": "main", "image": "x"}]}
    run = run_of(template={"spec": spec})
    (ending,) = played(files, scenario([SOLID], limit="1h"), run=run)
    assert ending.phase == "Pending"
    assert "zone" in ending.reason


def test_pods_go_where_they_prefer_and_then_where_it_is_cheap() -> None:
    """Free nodes first; a pool that is full is left out."""
    (preferred,) = played(on_spot(mode="Prefer"), scenario([SOLID, {**CHEAP, "price": 2}]))
    (cheapest,) = played(on_spot(mode="Allow"), scenario(pools()))
    (full,) = played(on_spot(mode="Allow"), scenario(pools(nodes=3)))
    assert set(preferred.nodes) == set(cheapest.nodes) == {"cheap"}
    assert {name: round(each) for name, each in full.nodes.items()} == {"cheap": 30, "solid": 10}


def test_requests_taints_and_labels_decide_as_in_a_cluster() -> None:
    """A pool whose nodes are too small, or whose taint is not tolerated, gets no pod."""
    container = {"name": "main", "image": "x", "resources": {"limits": {"cpu": "8"}}}
    run = run_of(template={"spec": {"containers": [container]}})
    small = {**CHEAP, "allocatable": {"cpu": "4"}}
    tainted = {**CHEAP, "name": "tainted", "taints": [{"key": "x", "effect": "NoSchedule"}]}
    spec = [small, tainted, {**SOLID, "allocatable": {"cpu": "8"}}]
    (ending,) = played(on_spot(mode="Allow"), scenario(spec), run=run)
    assert set(ending.nodes) == {"solid"}


def test_all_sets_have_the_same_luck() -> None:
    """The nodes of a pool live as long, and batches take the same ones, whatever others do."""
    spot = pools(
        lifetime="6h",
        batches={"every": "5h", "percent": 50},
        soldOut={"every": "6h", "lasts": "1h"},
    )
    text = scenario(spot)
    one, same = played(on_spot(), text, repeat=5), played(on_spot(), text, repeat=5)
    assert one == same
    other = played(on_spot(), text, repeat=5, seed=2)
    assert [each.seconds for each in one] != [each.seconds for each in other]
    first_loss = [
        next(each.at for each in ending.happenings if "loses" in each.what) for ending in one
    ]
    with_fallback = [
        next(each.at for each in ending.happenings if "loses" in each.what)
        for ending in played(on_spot(fallback=FALLBACK), text, repeat=5)
    ]
    assert first_loss == with_fallback


def test_without_checkpoints_everything_is_repeated() -> None:
    """And a program that is lost again and again reaches the limit."""
    text = scenario(pools(events=[{"at": "5h", "lose": 1}]), program={"work": "10h"})
    (ending,) = played(on_spot(), text)
    assert ending.seconds == pytest.approx((5 + 10) * 3600 + 60, abs=5)


def test_a_run_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where nodes live for seconds: nobody waits for it."""
    monkeypatch.setattr(play, "MOST_MOMENTS", 30)
    (ending,) = played(on_spot(), scenario(pools(lifetime="1m")))
    assert ending.phase != "Succeeded"
    assert ending.reason.startswith("gave up after 30 moments")
