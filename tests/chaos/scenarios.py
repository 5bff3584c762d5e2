"""The scenarios, in the order in which they are played."""

from __future__ import annotations

from typing import Final

from tests.chaos import (
    attacked,
    injected,
    outage,
    overload,
    rolling,
    rotated,
    runs,
    serviced,
    steady,
    struck,
    upgraded,
)
from tests.chaos.stage import Scenario

_PLAYED: Final = (
    rolling.SCENARIO,
    upgraded.SCENARIO,
    struck.KILL,
    struck.STOP,
    rotated.SCENARIO,
    outage.SCENARIO,
    runs.SCENARIO,
    overload.SCENARIO,
    attacked.SCENARIO,
    steady.SCENARIO,
)
SCENARIOS: Final[dict[str, Scenario]] = {each.name: each for each in _PLAYED}
# In short forms only, and on no page.
BESIDE: Final[dict[str, Scenario]] = {
    each.name: each for each in (injected.SCENARIO, serviced.SCENARIO)
}
