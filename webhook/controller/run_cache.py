"""From remembered Runs to typed ones and their plans, each made once for as long as it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from webhook.errors import InvalidRun
from webhook.policy.findings import path_text
from webhook.policy.messages import sentence
from webhook.recent import Recent
from webhook.run.model import Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.stored_run import StoredRun
    from webhook.run.plan import Plan

# Runs whose replicas come and go at the same time; the plan of any other is made anew in
# milliseconds.
MOST: Final = 64


class RunCache:
    """Reads Runs. `plan` makes a run's plan; it is the caller's, who knows the cluster's domain."""

    def __init__(self, plan: Callable[[Run], Plan]) -> None:
        self._make = plan
        self._runs: Recent[tuple[str, str], Run] = Recent(MOST)
        self._plans: Recent[tuple[str, int], Plan] = Recent(MOST)

    def run(self, stored: StoredRun) -> Run:
        """The typed Run. Raises InvalidRun with everything that is wrong with it."""
        return self._runs.made((stored.uid, stored.version), lambda: read(stored))

    def plan(self, run: Run) -> Plan:
        """Its plan. Raises InvalidRun if no pods can be made of the run."""
        key = (run.metadata.uid, run.metadata.generation)
        return self._plans.made(key, lambda: self._make(run))


def read(stored: StoredRun) -> Run:
    """The typed Run. Raises InvalidRun with everything that is wrong with it."""
    return typed(stored.raw())


def typed(raw: dict[str, Any]) -> Run:
    """The typed Run of a raw one. Raises InvalidRun with everything that is wrong with it."""
    try:
        return Run.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        raise InvalidRun(
            [f"{path_text(line['loc'])}: {sentence(line)}" for line in lines]
        ) from None


def status_of(stored: StoredRun) -> RunStatus:
    """The status of a Run whose spec cannot be read; an empty one if that cannot be either."""
    try:
        return RunStatus.model_validate(stored.raw().get("status") or {})
    except ValidationError:
        return RunStatus()
