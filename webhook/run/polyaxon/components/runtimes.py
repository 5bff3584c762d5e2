"""The runtimes of components, as kinds, frameworks and roles of a Run.

Read in polyaxon 2.18 (`_flow/run/`), and in the releases before it for those that it dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Runtime:
    """One kind under `run`.

    kind: the Run's. framework: the Run's, or "" for a single pod.
    roles: the fields with replicas, by the name that the role has in a Run.
    groups: the field whose replicas come in named groups, or "".
    """

    kind: str
    framework: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    groups: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that hold replicas."""
        return (*self.roles.values(), self.groups) if self.groups else tuple(self.roles.values())


def _same(*names: str) -> dict[str, str]:
    return dict(zip(names, names, strict=True))


_RAY: Final = Runtime("job", "ray", {"head": "head"}, "workers")

JOB: Final = "job"
SERVICE: Final = "service"
RUNTIMES: Final[Mapping[str, Runtime]] = {
    JOB: Runtime("job"),
    SERVICE: Runtime("service"),
    "tfjob": Runtime("experiment", "tensorflow", _same("chief", "worker", "ps", "evaluator")),
    "pytorchjob": Runtime("experiment", "pytorch", _same("master", "worker")),
    "mpijob": Runtime("experiment", "mpi", _same("launcher", "worker")),
    "xgbjob": Runtime("experiment", "xgboost", _same("master", "worker")),
    "paddlejob": Runtime("experiment", "paddle", _same("master", "worker")),
    "mxjob": Runtime("experiment", "mxnet", _same("scheduler", "server", "worker")),
    "rayjob": _RAY,
    "raycluster": _RAY,
    "daskjob": Runtime("job", "dask", {"driver": "job", **_same("scheduler", "worker")}),
    "daskcluster": Runtime("job", "dask", _same("scheduler", "worker")),
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
