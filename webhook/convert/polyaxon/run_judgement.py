"""Judge a Run in the making by its model, its plan and the pod schema, with all errors at once."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from webhook.convert.polyaxon.draft import source
from webhook.errors import InvalidRun
from webhook.policy.findings import Path, parse_path
from webhook.run.model import Run
from webhook.run.plan import plan
from webhook.run.template_faults import faults, written_faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.pod_schema.field_checks import Fault


class Judgement(NamedTuple):
    """The errors of the Run's model, of its plan, and of its templates; no Run after errors."""

    lines: Sequence[ErrorDetails]
    problems: Sequence[str]
    faults: Sequence[Fault]
    run: Run | None

    @property
    def is_whole(self) -> bool:
        """Whether the faults are those of the resulting pods, too."""
        return self.run is not None and not self.problems

    def is_wrong(self, draft: Draft, item: Item) -> bool:
        """Return True if there is an error at this item of the file."""
        paths = [
            *(line["loc"] for line in self.lines),
            *(path for path, _ in map(parse_problem, self.problems)),
            *(fault.path for fault in self.faults if fault.severity == "error"),
        ]
        return any(source(draft, path) == (item, ()) for path in paths)


def judge(document: Mapping[str, Any], *, plans: bool) -> Judgement:
    """Judge the Run; with `plans`, also its plan and the resulting pods.

    If the model refuses values, templates are judged without these.
    """
    try:
        run = Run.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        rest = copy.deepcopy(dict(document))
        for line in lines:
            _remove(rest, line["loc"])
        try:
            left = Run.model_validate(rest, by_alias=True, by_name=False)
        except ValidationError:
            return Judgement(lines, (), (), None)
        return Judgement(lines, (), [*written_faults(left)], None)
    if not plans:
        return Judgement((), (), [*written_faults(run)], None)
    try:
        return Judgement((), (), faults(plan(run)), run)
    except InvalidRun as error:
        return Judgement((), error.problems, [*written_faults(run)], run)


def _remove(document: Any, path: Path) -> None:
    """Remove the value at a path of pydantic's; of an item of a list, the whole list.

    The end of such a path may name a part of the model instead of the document.
    """
    holder, key = None, ""
    for step in path:
        if isinstance(document, dict):
            if step not in document:
                # It is missing, or removed already because of another error.
                return
            holder, key = document, str(step)
            document = document[step]
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            break
    if holder is not None:
        del holder[key]


def parse_problem(problem: str) -> tuple[Path, str]:
    """Parse one error of the plan, such as `spec.template.spec.volumes[0]: …`."""
    text, colon, message = problem.partition(": ")
    if not colon or " " in text:
        return (), problem
    return parse_path(text), message
