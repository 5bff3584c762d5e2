"""Runs as the controller caches them: each as JSON text, some of them parsed and with plans."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook import names
from webhook.recent import Recent
from webhook.run.backends.engines import engine_key
from webhook.run.gang import stored_gang
from webhook.run.idle import is_idle, reduce_metadata, reduce_run
from webhook.run.model.status import PHASES, RunStatus
from webhook.run.queue import ADMITTED
from webhook.run.reading import MOST_BYTES, RunReading, is_understood, read_run, size_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.run.model import Run
    from webhook.run.model.status import GangStatus
    from webhook.run.plan import Plan

# orjson serializes at most 254 levels.
_TOO_DEEP: Final = "spec: objects and lists are nested more than some 250 deep; want fewer levels"
# In metrics, each phase that another version wrote.
OTHER_PHASE: Final = "Other"
# The reasons of a Run that can have no pods.
INVALID: Final = "InvalidRun"
TOO_LARGE: Final = "TooLarge"
# Fields that objects in a list response lack.
_TYPE: Final = {"apiVersion": names.API_VERSION, "kind": names.RUN_KIND}
# Limit on cached runs, those whose replicas change at the same time. The plan of any other run is
# computed again in milliseconds.
CACHED_PLANS: Final = 64
# Bytes of JSON text of all cached runs; as objects they take ten to thirty times as much.
MOST_TEXT: Final = 2 * 2**20


def phase_label(phase: str) -> str:
    """Return the phase as metrics name it, which have a bounded number of names."""
    return phase if phase in PHASES else OTHER_PHASE


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One version of a Run.

    The object stays JSON text, a tenth of its size as dictionaries. It lacks the metadata that
    mean nothing here, such as annotations: they do not count for the size of a Run.

    reduced: of an idle Run `text` has only what decisions about it need, a kilobyte or two.
    engine: the key in ENGINES of the engine that creates the pods; empty for the native backend.
    queued: it is, or was, in a queue of Kueue.
    understood: its status says nothing else.
    problem: why no pods can be created, if it is known already; `text` then lacks the spec, or
    what only a plan reads.
    reason: that of the condition which says so.
    gang: the start of a run whose replicas start all at once, until it is whole.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    version: str
    phase: str
    deleted: bool
    text: bytes
    problem: str = ""
    reason: str = INVALID
    engine: str = ""
    queued: bool = False
    understood: bool = True
    reduced: bool = False
    created: str = ""
    gang: GangStatus | None = None

    @property
    def key(self) -> str:
        """The run's key in caches and queues."""
        return f"{self.namespace}/{self.name}"

    def raw(self) -> dict[str, Any]:
        """Return a mutable copy of the object."""
        whole: dict[str, Any] = orjson.loads(self.text)
        return whole


def store(raw: dict[str, Any], *, whole: bool = False) -> StoredRun:
    """Convert a raw Run from a response, a list or a watch; `whole`: even if it is idle."""
    metadata = reduce_metadata(raw["metadata"])
    kept = {**_TYPE, **raw, "metadata": metadata}
    engine, status = engine_key(raw.get("spec") or {}), _mapping(raw.get("status"))
    conditions = status.get("conditions")
    queued = not engine and (
        names.KUEUE_QUEUE in (metadata.get("labels") or {})
        or any(
            _mapping(condition).get("type") == ADMITTED
            for condition in (conditions if isinstance(conditions, list) else ())
        )
    )
    understood = is_understood(status)
    # What is not understood may be where the reduced Run has nothing.
    reduced = not whole and understood and is_idle(raw, queued=queued)
    if reduced:
        kept = reduce_run(kept)
    problem, reason = "", INVALID
    try:
        text = orjson.dumps(kept)
        if len(text) > MOST_BYTES and (problem := size_problem(kept)):
            reason = TOO_LARGE
    except orjson.JSONEncodeError:
        # The API server accepts ten thousand levels.
        problem = _TOO_DEEP
    if problem:
        text = _without_plan(kept, status, engine)
    return StoredRun(
        namespace=_copy(metadata["namespace"]),
        name=_copy(metadata["name"]),
        uid=_copy(metadata["uid"]),
        generation=metadata.get("generation") or 0,
        version=_copy(metadata["resourceVersion"]),
        phase=_copy(str(status.get("phase") or "")),
        deleted=bool(metadata.get("deletionTimestamp")),
        text=text,
        problem=problem,
        reason=reason,
        engine=engine,
        queued=queued,
        understood=understood,
        reduced=reduced,
        created=_copy(metadata.get("creationTimestamp") or ""),
        gang=None if engine or queued or reduced or problem else stored_gang(raw),
    )


def _without_plan(raw: dict[str, Any], status: dict[str, Any], engine: str) -> bytes:
    """Return the text of a Run that can have no pods.

    If it has begun, by an earlier version, it has what suspends and ends it. Otherwise it lacks the
    spec: only its status is written, and the stored object keeps its spec.
    """
    kept = reduce_run(raw)
    if RunStatus.read(status).begun and not engine:
        with suppress(orjson.JSONEncodeError):
            if not size_problem(kept):
                return orjson.dumps(kept)
    del kept["spec"]
    return orjson.dumps(kept)


def _copy(text: str) -> str:
    """Return the text at another place in memory.

    Beside the texts that were read with it, it would keep Python from returning the memory of a
    thousand of these.
    """
    return text.encode().decode()


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class RunCache:
    """Reads Runs. `plan` computes a run's plan; the caller knows the cluster's domain."""

    def __init__(self, plan: Callable[[Run], Plan]) -> None:
        self._make = plan
        self._runs: Recent[bytes, RunReading] = Recent(CACHED_PLANS, MOST_TEXT)
        self._plans: Recent[tuple[str, int, str | None], Plan] = Recent(CACHED_PLANS, MOST_TEXT)

    def read(self, stored: StoredRun) -> RunReading:
        """Return the Run as far as this version understands it. Never raises."""
        # Definitions that are exchanged drop fields, and the version stays.
        return self._runs.get_or_make(stored.text, lambda: _read(stored), len(stored.text))

    def plan(self, stored: StoredRun) -> Plan:
        """Return the run's plan. Raises InvalidRun if no pods can be created."""
        reading = self.read(stored)
        # The pods mount the Secret that the status names.
        key = (stored.uid, stored.generation, reading.status.ssh_secret)
        return self._plans.get_or_make(
            key, lambda: self._make(reading.valid_run()), len(stored.text)
        )


def _read(stored: StoredRun) -> RunReading:
    reading = read_run(stored.raw())
    if stored.problem and not reading.run:
        return replace(reading, unknown=(), problems=(stored.problem,))
    return reading
