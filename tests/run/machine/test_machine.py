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

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.run.machine.happenings import HAPPENINGS, RARE, Happening
from tests.run.machine.specs import serving, training
from tests.run.machine.stage import Stage
from tests.run.machine.walks import SpecOf, broken_by, random_walk
from webhook.run import steps
from webhook.run.reconcile import reconcile

# As in tests/laws: FAIRLEAD_EXAMPLES=20000 for a long run.
EXAMPLES = int(os.environ.get("FAIRLEAD_EXAMPLES", "300"))


class OneController(RuleBasedStateMachine):
    """One controller, which may die and be replaced at any moment."""

    controllers = 1
    spec_of: SpecOf = staticmethod(training)

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        """A Run is created."""
        self.data = data
        self.stage = Stage(reconcile, self.controllers, self.spec_of(self._choose))
        self.stage.life()

    def _choose(self, values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def teardown(self) -> None:
        """The world turns kind."""
        if hasattr(self, "stage"):
            self.stage.end()


class TwoControllers(OneController):
    """Two controllers at once, neither of which knows of the other."""

    controllers = 2


class Notebooks(OneController):
    """Runs that serve."""

    spec_of = staticmethod(serving)


def _rule(happening: Happening) -> Callable[..., None]:
    def happens(machine: OneController, **values: Any) -> None:
        if happening.method == "apply":
            values["spec"] = machine.spec_of(machine._choose)  # noqa: SLF001 (it is its rule)
        getattr(machine.stage, happening.method)(**values)
        machine.stage.life()

    happens.__name__ = happening.method
    any_rule: Any = rule
    values = {name: st.sampled_from(some) for name, some in happening.values.items()}
    made: Callable[..., None] = any_rule(**values)(happens)
    return made


for position, each in enumerate((*HAPPENINGS, *RARE)):
    setattr(OneController, f"{each.method}_{position}", _rule(each))


def _case(machine: type[OneController], examples: int) -> Any:
    case = machine.TestCase
    case.settings = settings(
        max_examples=max(examples, 1),
        stateful_step_count=50,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestOneController = _case(OneController, EXAMPLES // 2)
TestTwoControllers = _case(TwoControllers, EXAMPLES // 6)
TestNotebooks = _case(Notebooks, EXAMPLES // 12)


@pytest.mark.parametrize(
    ("spec_of", "controllers", "walks"),
    [
        pytest.param(training, 1, EXAMPLES * 4, id="one controller"),
        pytest.param(training, 2, EXAMPLES, id="two controllers"),
        pytest.param(serving, 1, EXAMPLES // 3, id="notebooks"),
    ],
)
def test_no_random_walk_breaks_a_law(
    spec_of: SpecOf, controllers: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same world, by walks that are numbered and all different."""
    for seed in range(walks):
        # Every other run is large: its Service is closed while its pods are created.
        monkeypatch.setattr(steps, "LARGE", seed % 2 * 250)
        broken = broken_by(random_walk(seed, spec_of, controllers), reconcile)
        assert not broken, f"walk {seed}: {broken}"
