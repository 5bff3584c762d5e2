"""The runtimes of components, as kinds, frameworks and roles of a Run.

Read in polyaxon 2.18 (`_flow/run/`), and in the releases before it for those that it dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.rendezvous.framework import PolyaxonRuntime
from webhook.run.rendezvous.table import POLYAXON_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Mapping


JOB: Final = "job"
SERVICE: Final = "service"
RUNTIMES: Final[Mapping[str, PolyaxonRuntime]] = {
    JOB: PolyaxonRuntime("job"),
    SERVICE: PolyaxonRuntime("service"),
    **POLYAXON_RUNTIMES,
}
# What was a runtime there and can be no Run.
REFUSED: Final[Mapping[str, str]] = {
    "dag": "a Run is one run; write one for each operation of the dag",
    "matrix": "a Run is one run; write one for each combination",
    "schedule": "a Run starts once; a CronJob that creates Runs starts them by the clock",
    "spark": "write a Run of framework spark: a driver, which makes its own executors",
    "flink": "there are no runs of Flink",
    "notifier": "Fairlead notifies nobody; watch the Run's events and conditions",
    "tuner": "Fairlead tunes nothing; Katib does",
    "watchdog": "Fairlead has no watchdogs; set termination.timeout",
    "cleaner": "Fairlead keeps no artifacts that would have to be cleaned",
    "builder": "Fairlead builds no images; kaniko does, in a Run of kind build that you write",
}
