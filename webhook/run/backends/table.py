"""The table of backends, and rendering with all problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.errors import InvalidRun
from webhook.policy.findings import path_text
from webhook.run.backends.backend import Drafts
from webhook.run.backends.dask_operator import DaskBackend
from webhook.run.backends.jobset import JobSetBackend
from webhook.run.backends.kuberay import KubeRayBackend
from webhook.run.backends.spark_operator import SparkBackend
from webhook.run.backends.trainer import TrainerBackend
from webhook.run.backends.training_operator import Kubeflow
from webhook.run.plan import drafts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.run.backends.backend import Backend, Manifest
    from webhook.run.model import Run

# Fairlead's own controller.
NATIVE: Final = "native"
# In the order of documentation.
BACKENDS: Final[Mapping[str, Backend]] = {
    backend.name: backend
    for backend in (
        Kubeflow(),
        JobSetBackend(),
        DaskBackend(),
        TrainerBackend(),
        KubeRayBackend(),
        SparkBackend(),
    )
}


def render_run(run: Run, backend: Backend) -> Sequence[Manifest]:
    """Return the engine's objects for a Run.

    Raises InvalidRun with everything that is wrong with the Run, or that the engine cannot do.
    """
    run_drafts, problems = drafts(run)
    refused = [*backend.problems(run)]
    whole = Drafts(run, {draft.role: draft for draft in run_drafts if draft.index is None})
    if not problems and not refused:
        refused += backend.draft_problems(whole)
    problems += [f"{path_text(problem.at)}: {problem.message}" for problem in refused]
    if problems:
        raise InvalidRun(problems)
    return backend.render(whole)
