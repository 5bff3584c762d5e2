"""Random walks over the stage: numbered, all different, and cut down to what matters if they fail.

Not a state machine of Hypothesis: that varies each example before it takes a new one, and plays a
fifth as many walks in the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeAlias

from tests.run.machine.controller import Heart
from tests.run.machine.happenings import HAPPENINGS, QUEUES, RARE, STARTS
from tests.run.machine.specs import Choose
from tests.run.machine.stage import Stage
from tests.run.machine.things import Json

SpecOf: TypeAlias = Callable[[Choose], Json]
STEPS = 60


class Walk(NamedTuple):
    """A play: who is on the stage, and what happens."""

    controllers: int
    spec: Json
    steps: tuple[tuple[str, Json], ...]

    def told(self) -> str:
        """It as lines of Python, for a person and for a test."""
        lines = [f"stage = Stage(reconcile, {self.controllers}, {self.spec!r})"]
        for method, values in self.steps:
            given = ", ".join(f"{name}={value!r}" for name, value in values.items())
            lines.append(f"stage.{method}({given}); stage.life()")
        return "\n".join((*lines, "stage.end()"))


def random_walk(seed: int, spec_of: SpecOf, controllers: int) -> Walk:
    """The walk of this number."""
    random = Random(seed)
    spec = spec_of(random.choice)
    often = HAPPENINGS + (QUEUES if "queue" in spec else ()) + (STARTS if "gang" in spec else ())
    happenings = [each for each in often for _ in range(each.often * 4)]
    happenings += [each for each in RARE for _ in range(each.often)]
    steps: list[tuple[str, Json]] = []
    if "gang" in spec:
        steps += [
            ("room", {"places": 2}),
            ("apply", {"name": "two", "spec": spec_of(random.choice)}),
        ]
    for _ in range(STEPS):
        each = random.choice(happenings)
        values: Json = {name: random.choice(some) for name, some in each.values.items()}
        if each.method == "apply":
            values["spec"] = spec_of(random.choice)
        steps.append((each.method, values))
    return Walk(controllers, spec, tuple(steps))


def taken(walk: Walk, heart: Heart) -> AssertionError | None:
    """Take the walk. Answers the law that was broken on the way, if one was."""
    try:
        stage = Stage(heart, walk.controllers, walk.spec)
        stage.life()
        for method, values in walk.steps:
            getattr(stage, method)(**values)
            stage.life()
        stage.end()
    except AssertionError as broken:
        return broken
    return None


def cut_down(walk: Walk, heart: Heart) -> Walk:
    """The shortest walk found that still breaks a law: steps left out, by halves and then one."""
    width = len(walk.steps) // 2
    while width:
        begin = 0
        while begin < len(walk.steps):
            shorter = walk._replace(steps=walk.steps[:begin] + walk.steps[begin + width :])
            if taken(shorter, heart):
                walk = shorter
            else:
                begin += width
        width //= 2
    return walk


def broken_by(walk: Walk, heart: Heart) -> str:
    """What a failing walk comes to, or nothing."""
    if taken(walk, heart) is None:
        return ""
    short = cut_down(walk, heart)
    return f"{taken(short, heart)}\n\n{short.told()}"
