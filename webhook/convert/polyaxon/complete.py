"""Complete a draft to a Run, and report errors at their place in the file."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from webhook import names
from webhook.convert.polyaxon.draft import non_empty, source, within, wrapped
from webhook.convert.polyaxon.item import plain
from webhook.dns_names import MAX_LABEL
from webhook.errors import InvalidRun
from webhook.policy.document_parser import sentence
from webhook.policy.findings import parse_path, path_text
from webhook.policy.yaml_tree import Disputed
from webhook.run.model import Run, RunSpec
from webhook.run.plan import plan
from webhook.run.template_faults import faults, written_faults
from webhook.strict import UNKNOWN_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from webhook.convert.polyaxon.draft import Converted as Made
    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import Item
    from webhook.pod_schema.field_checks import Fault
    from webhook.policy.findings import Finding, Path

# The last element of a pydantic path if the key of a mapping is invalid, not its value.
_KEY: Final = "[key]"
_RENAMED: Final = (
    "is not a valid Kubernetes name; the Run is called {name}: --name sets another name"
)
_TOO_LONG: Final = (
    "has {length} characters, and {most} leave room for the names of the pods; the Run is called "
    "{name}: --name sets another name"
)
_NO_PODS: Final = "a Run has no role without replicas: remove the role"
_REPLICAS: Final = ("spec", "replicas")
# The beginning of a Polyaxon template.
_LEFT_AS_IT_IS: Final = "{{"
# Annotations of the Run that tools show: k8s.io/docs/reference/labels-annotations-taints.
_DESCRIPTION: Final = "kubernetes.io/description"
_FOREIGN: Final = re.compile(r"[^a-z0-9]+")
_LETTER: Final = re.compile(r"[a-z]")
_FALLBACK: Final = "run"
# A meaning of a disputed value; the other one is a number.
_BOOLEAN: Final = "a boolean"


class Converted(NamedTuple):
    """The result of a conversion.

    document: the Run as JSON, in the order of its model; None if there are errors
    findings: errors and warnings, in order of file and place
    note: about the file as a whole, or ""
    """

    document: Mapping[str, Any] | None = None
    run: Run | None = None
    findings: tuple[Finding, ...] = ()
    note: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "warning")


def complete(made: Made, document: Item, name: str, notes: Notes) -> Converted:
    """Return the Run, or none after noting errors; `name` is from the command line, or ""."""
    draft = wrapped(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RUN_KIND,
            "metadata": _metadata(made, document, name, notes),
            "spec": {key: made.spec[key] for key in RunSpec.outer_names() if key in made.spec},
        }
    )
    whole = plain(draft)
    # After an error, what was not read is missing, and what the plan makes of the rest is wrong.
    incomplete = bool(notes.errors)
    disputed = {item: item.value for item in draft.walk() if isinstance(item.value, Disputed)}
    judged = judge(draft, _resolved(whole, lambda value: value.text), plans=not incomplete)
    as_value = _resolved(whole, _value)
    wrong = [judged, judge(draft, as_value, plans=not incomplete)] if disputed else []
    refused = [{source(draft, error.path) for error in judgement.errors} for judgement in wrong]
    cures = {
        item: cure
        for item, value in disputed.items()
        if (cure := _cure(value, *((item, ()) in places for places in refused)))
    }
    for item, cure in cures.items():
        notes.error(item, cure)
    report = _Report(draft, made, document, notes, cures)
    for line in judged.lines:
        if not (incomplete and line.is_absence):
            report.add(line)
    reported = {finding.path for finding in notes.errors}
    for fault in judged.faults:
        if not judged.lines or report.where(fault.path) not in reported:
            report.add_fault(fault)
    if notes.errors or judged.run is None:
        return Converted()
    return Converted(whole, judged.run)


def _resolved(value: Any, choose: Callable[[Disputed], Any]) -> Any:
    """Return the document with a value for each that readers of YAML take differently."""
    if isinstance(value, dict):
        return {key: _resolved(child, choose) for key, child in value.items()}
    if isinstance(value, list):
        return [_resolved(child, choose) for child in value]
    return choose(value) if isinstance(value, Disputed) else value


def _value(disputed: Disputed) -> bool | int:
    """Return some value of the type that is not text; which one it is does not matter."""
    return True if disputed.meaning == _BOOLEAN else 1


def _cure(disputed: Disputed, wrong_as_text: bool, wrong_as_value: bool) -> str:
    """Return how to write it; empty if the field takes neither text nor the value."""
    if wrong_as_text and wrong_as_value:
        return ""
    text, meaning = disputed.text, disputed.meaning
    if wrong_as_value:
        return f"{text} can be read as {meaning}; quote it: {text!r}"
    plainly = "true or false" if meaning == _BOOLEAN else "as a decimal number"
    quoting = "" if wrong_as_text else f"quote it: {text!r}, or "
    return f"{text} can be read as text or as {meaning}; {quoting}write it {plainly}"


def _metadata(made: Made, document: Item, name: str, notes: Notes) -> dict[str, Draft]:
    if not name:
        given_name = made.name.as_text if made.name is not None else ""
        suffix = _longest_suffix(made.spec)
        name = run_name(given_name or file_name(document.origin.file), suffix)
        if made.name is not None and name != given_name:
            most = MAX_LABEL - suffix
            cut = given_name.startswith(name) and len(given_name) > most
            text = _TOO_LONG if cut else _RENAMED
            what = text.format(name=name, length=len(given_name), most=most)
            notes.warning(made.name, what, key=False)
    annotations = {**made.annotations, **non_empty(**{_DESCRIPTION: made.description})}
    return non_empty(
        name=name, namespace=made.namespace, labels=dict(made.labels), annotations=annotations
    )


def _longest_suffix(spec: dict[str, Draft]) -> int:
    """Return the maximum length of `-<role>-<index>`."""
    longest = len("-master-0")
    for role, replica in wrapped(spec).find("replicas").entries.items():
        number = replica.find("count").value
        last = number - 1 if isinstance(number, int) and number > 0 else 0
        longest = max(longest, len(f"-{role}-{last}"))
    return longest


class Wrong(NamedTuple):
    """One error of the Run's model or plan. `is_absence`: a value is missing, or null."""

    path: Path
    message: str
    at_key: bool = False
    is_absence: bool = False


class Judgement(NamedTuple):
    """The errors of the Run's model or of its plan, and the faults of its templates.

    Without errors, the faults are those of the resulting pods. No run: its model has errors.
    """

    lines: Sequence[Wrong]
    faults: Sequence[Fault]
    run: Run | None

    @property
    def errors(self) -> Iterator[Wrong | Fault]:
        yield from self.lines
        yield from (fault for fault in self.faults if fault.severity == "error")


def judge(draft: Item, document: Mapping[str, Any], *, plans: bool) -> Judgement:
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
        wrong = [_of_model(draft, line) for line in lines]
        try:
            left = Run.model_validate(rest, by_alias=True, by_name=False)
        except ValidationError:
            return Judgement(wrong, (), None)
        return Judgement(wrong, [*written_faults(left)], None)
    try:
        return Judgement((), faults(plan(run)) if plans else [*written_faults(run)], run)
    except InvalidRun as error:
        return Judgement([*map(_of_plan, error.problems)], [*written_faults(run)], run)


def _of_model(draft: Item, line: ErrorDetails) -> Wrong:
    path: Path = line["loc"]
    at_key = line["type"] == UNKNOWN_FIELD
    if path[-1:] == (_KEY,):
        path, at_key = path[:-1], True
    place = source(draft, path)
    written = place[0].text if place is not None and not place[1] and not at_key else ""
    text = sentence(line, written or None)
    if path[-1:] == ("count",) and line["input"] == 0:
        text = f"{text}; {_NO_PODS}"
    return Wrong(path, text, at_key, line["type"] == "missing" or line["input"] is None)


def _of_plan(problem: str) -> Wrong:
    """Parse one error of the plan, such as `spec.template.spec.volumes[0]: …`."""
    text, colon, message = problem.partition(": ")
    if not colon or " " in text:
        return Wrong((), problem)
    return Wrong(parse_path(text), message)


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


@dataclass(frozen=True, slots=True)
class _Report:
    """Reports what is wrong with the Run at its place in the Polyaxonfile."""

    draft: Item
    made: Made
    document: Item
    notes: Notes
    # Items that are reported already, with how to write them.
    cures: Mapping[Item, str]

    def where(self, path: Path) -> str:
        """Return the path in the file from which a path of the Run comes; empty without one."""
        place = source(self.draft, path)
        return path_text((*place[0].origin.path, *place[1])) if place else ""

    def add_fault(self, fault: Fault) -> None:
        """Report a fault of the pod schema, except in a Polyaxon template that was not replaced."""
        place = source(self.draft, fault.path)
        if place is not None and _LEFT_AS_IT_IS in place[0].as_text:
            return
        if fault.severity == "error":
            self.add(Wrong(fault.path, fault.message, fault.at_key))
        elif place is not None:
            self.notes.warning(place[0], fault.message)

    def add(self, wrong: Wrong) -> None:
        """Report an error at the item from which the path comes, or at the nearest item."""
        path, message, at_key, _ = wrong
        place = source(self.draft, path)
        if place is not None:
            item, left = place
            if item not in self.cures:
                self.notes.error(item, message, below=left, key=at_key and not left)
        elif path[:2] == _REPLICAS and len(path) <= len(_REPLICAS) + 1 and self.made.replicas:
            role = self.made.roles.get(str(path[-1]))
            self.notes.error(self.made.replicas if role is None else role, message)
        else:
            near = within(self.draft, path) or self.made.replicas or self.document
            self.notes.error(near, f"in the Run, {path_text(path)}: {message}")


def run_name(text: str, longest_suffix: int) -> str:
    """Return a DNS label that begins with a letter, and leaves room for `-worker-6`.

    Of `organisation/name:tag` only the name is used.
    """
    base_name = text.rpartition("/")[2].partition(":")[0]
    label = _FOREIGN.sub("-", base_name.lower()).strip("-")
    if not _LETTER.match(label):
        label = f"{_FALLBACK}-{label}".strip("-")
    return label[: MAX_LABEL - longest_suffix].rstrip("-")


def file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].partition(".")[0]
