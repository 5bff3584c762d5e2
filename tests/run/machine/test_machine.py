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
cleanPodPolicy ignored; success by some of the workers.
"""

from __future__ import annotations

import pytest

from tests.examples import examples
from tests.run.machine.specs import serving, training
from tests.run.machine.walks import SpecOf, broken_by, random_walk
from webhook.run import steps
from webhook.run.reconcile import reconcile


@pytest.mark.property
@pytest.mark.parametrize(
    ("spec_of", "controllers", "walks"),
    [
        pytest.param(training, 1, examples(1400), id="one controller"),
        pytest.param(training, 2, examples(350), id="two controllers"),
        pytest.param(serving, 1, examples(130), id="notebooks"),
    ],
)
def test_no_random_walk_breaks_a_law(
    spec_of: SpecOf, controllers: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walks are numbered and all different; one that fails is cut down to what matters."""
    for seed in range(walks):
        # Every other run is large: its Service is closed while its pods are created.
        monkeypatch.setattr(steps, "LARGE", seed % 2 * 250)
        broken = broken_by(random_walk(seed, spec_of, controllers), reconcile)
        assert not broken, f"walk {seed}: {broken}"
