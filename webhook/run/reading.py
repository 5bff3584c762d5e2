"""Read a stored Run: its spec and its status apart, and what this version does not understand.

Of an author's file every error is an error. A stored Run may be of another version, or of its
definitions, which are upgraded first: what is not known holds the run, and never ends it (decision
96).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import ValidationError

from webhook import lenient
from webhook.crd.conditions import ConditionUpdate, update_conditions
from webhook.errors import InvalidRun
from webhook.policy.document_parser import sentence
from webhook.policy.findings import path_text
from webhook.run.model import Run, RunMetadata, RunStatus
from webhook.run.model.status import READY, UNDERSTOOD, UNKNOWN_WORDS
from webhook.shortening import cut, first_few
from webhook.strict import NOT_KNOWN, UNKNOWN_FIELD
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

# Bytes of the JSON text of a Run's spec. The controller keeps it as long as the Run is active, and
# an object of the API server may have six times as many. Of the spec only limits may change, so no
# Run grows by more than some bytes.
MOST_BYTES: Final = 256 * 1024
_MOST_NAMED: Final = 3
_MESSAGE_MAX_CHARACTERS: Final = 1000
_NO_FIELD: Final = "this version knows no such field"
_ALL_KNOWN: Final = ConditionUpdate(
    UNDERSTOOD, "True", "AllKnown", "this version knows all of the spec and of the status"
)
_READY_UNKNOWN: Final = ConditionUpdate(
    READY, "Unknown", "NotUnderstood", "the run is held, and its replicas are not counted"
)
_HELD: Final = (
    "the run is held: its pods go on, and none is created, deleted or counted, until the "
    "controller is upgraded"
)
_DROP_FIELDS: Final = (
    ", the run is suspended, or the cluster has the definitions of this version, which drop "
    "unknown fields (fairlead generate schema crd run | kubectl apply -f -)"
)
_DELETE: Final = ", or the Run is deleted"
_UNPLANNED: Final = (
    "the run is held: no pod is created for it, those that it has go on, and it can be suspended "
    "and deleted"
)
_CORRECT: Final = ", or the value is corrected (kubectl edit run NAME --subresource=status)"


@dataclass(frozen=True, slots=True)
class RunReading:
    """A stored Run as this version reads it.

    run: with the status, and with the spec without its unknown fields; None if that is no spec.
    status: without what cannot be read.
    unknown: fields and words of the spec that are not known, each with its path.
    problems: what is wrong with a spec in which all is known.
    unread, words: values of the status that cannot be read, and words that are not known.
    """

    status: RunStatus
    run: Run | None = None
    unknown: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def valid_run(self) -> Run:
        """Return the run. Raises InvalidRun with all problems of its spec."""
        if self.run is None:
            raise InvalidRun(self.problems or self.unknown)
        return self.run

    def hold(self) -> ConditionUpdate | None:
        """Return why the controller may do nothing about the run; None if it may.

        Its owner can suspend it all the same, by a field that this version knows.
        """
        if self.unread:
            return _not_understood("UnreadableStatus", self.unread, _HELD + _CORRECT)
        suspends = self.run is not None and self.run.spec.suspend and not self.status.ended
        return self.hold_end() if self.unknown and not suspends else None

    def hold_end(self) -> ConditionUpdate | None:
        """Return why the controller may not decide that the run is over; None if it may."""
        if not self.unknown:
            return None
        cure = _DROP_FIELDS if self.run else _DELETE
        return _not_understood("UnknownSpec", self.unknown, _HELD + cure)

    def report(self, status: RunStatus, generation: int, now: datetime) -> RunStatus:
        """Return the next status with the condition Understood, which a run has once it is False.

        status: of a run that is not held.
        """
        update = self.hold_end()
        if self.words:
            text = "kept, and no decision is based on it"
            update = _not_understood(UNKNOWN_WORDS, self.words, text)
        elif update is None and any(
            condition.type == UNDERSTOOD for condition in status.conditions
        ):
            update = _ALL_KNOWN
        if update is None:
            return status
        conditions = update_conditions(status.conditions, (update,), generation, to_second(now))
        return status.model_copy(update={"conditions": conditions})


def size_problem(raw: Mapping[str, Any]) -> str:
    """Return why the Run is too large to have pods; empty if it is not.

    Raises orjson.JSONEncodeError if it is nested too deeply.
    """
    size = len(orjson.dumps(raw.get("spec")))
    if size <= MOST_BYTES:
        return ""
    return (
        f"spec: has {size} bytes of JSON; want at most {MOST_BYTES}, with data in a ConfigMap, a "
        "volume or the image"
    )


def read_run(raw: Mapping[str, Any]) -> RunReading:
    """Read a stored Run. Never raises."""
    status, unread, words = lenient.read(RunStatus, raw.get("status"))
    metadata = {key: raw["metadata"].get(key) for key in RunMetadata.outer_names()}
    document = {
        **{key: value for key, value in raw.items() if key != "status"},
        # The API server has judged the metadata, and a later one may have more fields.
        "metadata": {key: value for key, value in metadata.items() if value is not None},
    }
    run, unknown, problems = _read_spec(document)
    if run and not (run.spec.delegated or run.spec.serving):
        status = _with_unrecorded(status, raw.get("status"))
    return RunReading(
        status,
        run.model_copy(update={"status": status}) if run else None,
        unknown,
        problems,
        _texts(unread),
        _texts(words),
    )


def _with_unrecorded(status: RunStatus, stored: object) -> RunStatus:
    """Return the status with the pods as unseen whose time another version did not record."""
    if not status.restarts or not isinstance(stored, dict) or "usage" in stored:
        return status
    return status.model_copy(update={"unseen": max(status.unseen, status.restarts)})


def _read_spec(
    document: dict[str, Any],
) -> tuple[Run | None, tuple[str, ...], tuple[str, ...]]:
    """Return the Run as far as it is known, what is not known, and what is wrong else."""
    try:
        return Run.model_validate(document, by_alias=True, by_name=False), (), ()
    except ValidationError as error:
        lines = error.errors(include_url=False)
    places = [(lenient.place_of(document, line["loc"]), line) for line in lines]
    not_known = {path: line for path, line in places if line["type"] in NOT_KNOWN}
    if not not_known:
        return None, (), tuple(f"{path_text(path)}: {sentence(line)}" for path, line in places)
    fields = [path for path, line in not_known.items() if line["type"] == UNKNOWN_FIELD]
    unknown = tuple(
        f"{path_text(path)}: {_NO_FIELD if path in fields else sentence(line)}"
        for path, line in not_known.items()
    )
    run = None
    with suppress(ValidationError):
        rest = lenient.without(document, fields)
        run = Run.model_validate(rest, by_alias=True, by_name=False)
    return run, unknown, ()


def hold_invalid(problems: Iterable[str]) -> ConditionUpdate:
    """Return why a run is held of which this version could make no pods, though it has begun.

    Its spec was valid then, and its templates do not change: another version judged it.
    """
    return _not_understood("InvalidSpec", tuple(problems), _HELD + _DELETE)


def hold_unplanned(reason: str, problem: str) -> ConditionUpdate:
    """Return why no pod is created for a run that has begun, and that no version may plan."""
    return _not_understood(reason, (problem,), _UNPLANNED)


def held_status(
    status: object, update: ConditionUpdate, generation: int, now: datetime
) -> dict[str, Any]:
    """Return the stored status of a run that is held: the same, with the condition and message.

    That the run is ready is not known any more.
    """
    kept = status if isinstance(status, dict) else {}
    stored = kept.get("conditions")
    conditions = stored if isinstance(stored, list) else []
    was_ready = any(_is(condition, READY, "True") for condition in conditions)
    updates = (_READY_UNKNOWN, update) if was_ready else (update,)
    types = [condition_update.type for condition_update in updates]
    replaced_conditions = [
        condition
        for condition in conditions
        if isinstance(condition, dict) and condition.get("type") in types
    ]
    before = RunStatus.read({"conditions": replaced_conditions}).conditions
    new = update_conditions(before, updates, generation, to_second(now))
    others = [condition for condition in conditions if condition not in replaced_conditions]
    return {
        **kept,
        "message": update.message,
        "conditions": [
            *others,
            *(condition.model_dump(mode="json", by_alias=True) for condition in new),
        ],
    }


def is_understood(status: Mapping[str, Any]) -> bool:
    """Return whether the condition of a stored status does not say otherwise."""
    conditions = status.get("conditions")
    return not any(
        _is(condition, UNDERSTOOD, "False")
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def _is(condition: object, kind: str, status: str) -> bool:
    return isinstance(condition, dict) and (
        (condition.get("type"), condition.get("status")) == (kind, status)
    )


def _not_understood(reason: str, what: tuple[str, ...], then: str) -> ConditionUpdate:
    text = cut(first_few(what, _MOST_NAMED), _MESSAGE_MAX_CHARACTERS)
    return ConditionUpdate(UNDERSTOOD, "False", reason, f"{text}; {then}")


def _texts(findings: Iterable[lenient.Finding]) -> tuple[str, ...]:
    return tuple(f"{path_text(('status', *finding.path))}: {finding.text}" for finding in findings)
