"""Runs in a world of faults: pods die, nodes go, caches lag, the controller dies between actions.

The laws (decisions.py, statuses.py, laws.py) are looked at whenever a controller decides, acts or
writes; at the end of each play the world turns kind, and every run that can end has to
(good_end.py).

That it can fail was tried by hand. It has caught: a pod deleted before its end is written; uids
forgotten at once or at the next write; attempts ignored, not raised by a suspension, or raised and
used in one look; no live look-up, and what vanished forgotten; finished indexes taken from the pods
that are there; no backoff, one that does not double, one that never ends; budgets one too small and
one too large, disruptionLimit ignored, disruptions charged as failures; Evicted taken for a
disruption, status.reason ignored, exit codes after a deletion taken at their word; timers of
backoff, deadline and TTL forgotten; a launcher that waits for nobody; a run that goes on after its
end or its deletion; each of those that go down together charged; pods before the Service; pods of
earlier attempts left, or their success taken; suspension not written before its deletions;
cleanPodPolicy ignored; success by some of the workers; a number that is not raised for a pod that
nobody saw, or for one that had no node; a deleted pod that is counted twice; a new attempt beside
programs of an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from tests.examples import examples
from tests.run.machine.cluster import NODES
from tests.run.machine.server import KINDS
from tests.run.machine.specs import TEMPLATE, elastic, gang, queued, serving, training
from tests.run.machine.stage import Stage
from tests.run.machine.things import Json
from tests.run.machine.walks import SpecOf, broken_by, random_walk
from webhook.run.reconcile import reconcile


@pytest.mark.property
@pytest.mark.timeout(600)  # `many` walks of one controller are minutes on a busy machine
@pytest.mark.parametrize(
    ("spec_of", "controllers", "walks"),
    [
        pytest.param(training, 1, examples(1400), id="one controller"),
        pytest.param(training, 2, examples(350), id="two controllers"),
        pytest.param(serving, 1, examples(130), id="notebooks"),
        pytest.param(queued, 1, examples(500), id="in a queue"),
        pytest.param(gang, 1, examples(500), id="all at once"),
        pytest.param(elastic, 1, examples(300), id="elastic"),
    ],
)
def test_no_random_walk_breaks_a_law(
    spec_of: SpecOf, controllers: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walks are numbered and all different; one that fails is cut down to what matters."""
    for seed in range(walks):
        # Every other run is large: its Service is closed while its pods are created.
        monkeypatch.setattr("webhook.run.steps.LARGE", seed % 2 * 250)
        broken = broken_by(random_walk(seed, spec_of, controllers), reconcile)
        assert not broken, f"walk {seed}: {broken}"


@pytest.mark.property
@pytest.mark.parametrize("scope", ["Replica", "Role", "Run"])
def test_a_lost_node_is_charged_to_no_program(scope: str) -> None:
    """Whenever its peers fail and the loss shows, in whatever way, within the incident window.

    With backoffLimit 0, so that one failure that is charged ends the run.
    """
    for seed in range(examples(200)):
        told = lose_a_node(scope, Random(seed))
        assert told["failed"] == 0, f"seed {seed}: {told}"
        assert told["phase"] != "Failed", f"seed {seed}: {told}"
        assert told["disruptions"] == 1, f"seed {seed}: {told}"


def lose_a_node(scope: str, random: Random) -> Json:
    """Play it to the end; what the run has said of itself before the node came back."""
    spec = {
        "framework": "pytorch",
        "replicas": {"master": {"count": 1}, "worker": {"count": 3}},
        "restartScope": scope,
        "backoffLimit": 0,
        "template": TEMPLATE,
        "cleanPodPolicy": "All",
    }
    stage = Stage(reconcile, 1, spec)
    for _ in range(5):
        stage.life()
    begin, lost = stage.server.now, random.choice(NODES)
    peers = [pod for pod in stage.server.pods.values() if pod.node != lost]
    assert all(pod.phase == "Running" for pod in stage.server.pods.values())
    stage.cluster.turn_off(lost)
    events: list[tuple[float, Callable[[], object]]] = [
        (random.uniform(0, 80), partial(stage.cluster.exit, pod, 1))
        for pod in random.sample(peers, random.randint(1, len(peers)))
    ]
    # Whatever becomes of the pods comes 30 s after it is known that the node is in trouble: PodGC
    # waits for 40 s, and a taint is set upon a node that is not ready.
    ways = ("noticed", "tainted", "shut down", "collected", "out of service", "back", "restarted")
    shows = random.choice(ways)
    known = random.uniform(0, 60)
    first = {"collected": "gone", "restarted": "lost"}.get(shows, "noticed")
    events += [
        (known, partial(stage.node, lost, first)),
        (known + 30, partial(stage.node, lost, shows)),
    ]
    for kind in random.sample(KINDS, random.randint(0, 2)):
        # Its events come late for a while.
        since = random.uniform(0, 60)
        events += [(at, partial(stage.lag, kind)) for at in (since, since + random.uniform(1, 25))]
    events.sort(key=lambda event: event[0])
    for second in range(400):
        stage.server.now = begin + second
        while events and events[0][0] <= second:
            events.pop(0)[1]()
        stage.life()
    status = stage.server.runs["one"].status
    roles = status["replicas"].values()
    told = {"failed": sum(role["failed"] for role in roles), **status, "shows": shows}
    stage.end()
    return told
