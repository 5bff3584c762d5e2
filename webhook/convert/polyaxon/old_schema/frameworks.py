"""The distributed frameworks of the old schema, as a Run's replicas.

Read in polyaxon-schemas 0.6 (`specs/frameworks.py`: which tasks there are) and polyaxon 0.x
(`polypod/mxnet.py`: the master schedules; `spawners/horovod_spawner.py`: the master calls mpirun,
and trains too; workers run sshd; `polypod/mpi_job.py`: the operator adds a launcher, for which the
file has no resources).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import Item
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.notes import Notes


@dataclass(frozen=True)
class Framework:
    """One of them.

    name: the Run's framework. master: the role that the master plays. ps: the role of the parameter
    servers, or "" if there are none. options: the framework's own part of the Run.
    launched: the command is the master's alone, and starts the others.
    calls: what Polyaxon put before the command.
    is_bare: the master has neither resources nor placement of its own.
    """

    name: str
    master: str = "master"
    ps: str = ""
    options: Mapping[str, Draft] = field(default_factory=dict)
    launched: bool = False
    calls: str = ""
    is_bare: bool = False

    def script(self, text: Draft) -> Draft:
        """What the shell is to do."""
        if isinstance(text, Item) and self.calls:
            return text.saying(f"{self.calls} {text.written}")
        return text


_MPI: Final = Framework("mpi", "launcher", launched=True, is_bare=True)
DISTRIBUTED: Final[Mapping[str, Framework]] = {
    # Estimators of that time know the first replica as master.
    "tensorflow": Framework("tensorflow", ps="ps", options={"masterTaskType": "master"}),
    "pytorch": Framework("pytorch"),
    "mxnet": Framework("mxnet", "scheduler", "server"),
    # One process for each slot of the hosts' file, which is as many as Polyaxon counted.
    "horovod": Framework(
        "mpi",
        "launcher",
        options={"launcherAsWorker": True},
        launched=True,
        calls="mpirun --allow-run-as-root --tag-output",
    ),
}
BACKENDS: Final = ("native", "kubeflow", "mpi", "other")
_KUBEFLOW: Final = (
    "Fairlead runs the replicas itself, without Kubeflow's operator, and tells them the same"
)
_OTHER: Final = "Fairlead runs this one like any other"


def distributed(
    framework: Item | None, spelt_under: str, backend: str | None, replicas: Item, notes: Notes
) -> Framework | None:
    """What framework connects the replicas; None, and an error, if none is named that can."""
    if backend == "mpi" or spelt_under == "mpi":
        return _MPI
    known = ", ".join(DISTRIBUTED)
    if spelt_under in DISTRIBUTED:
        if framework is not None and framework.written != spelt_under:
            notes.error(framework, f"is not the {spelt_under} of environment; keep one of the two")
        return DISTRIBUTED[spelt_under]
    if framework is None:
        notes.error(replicas, f"needs a framework beside environment: one of {known}", key=True)
        return None
    name = framework.written
    if name not in DISTRIBUTED:
        hint = guess(name, tuple(DISTRIBUTED))
        message = f"{shown(name)} connects no replicas; one of {known} does{hint}"
        notes.error(framework, message)
        return None
    return DISTRIBUTED[name]


def backend_of(item: Item | None, notes: Notes) -> str | None:
    """The backend, with a word on what it means here."""
    if item is None:
        return None
    name = item.written
    if name in ("kubeflow", "mpi"):
        notes.warning(item, _KUBEFLOW)
    elif name not in BACKENDS:
        hint = guess(name, BACKENDS)
        notes.error(item, f"{shown(name)} is not one of {', '.join(BACKENDS)}{hint}")
    elif name == "other":
        notes.warning(item, _OTHER)
    return name
