"""What a Run reports, native and given to another engine, as one table of its page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from tests.cluster.live_runs import TEMPLATE, LiveRun, run_manifest
from tests.cluster.spaces import NewNamespace, Space
from tests.eventually import eventually
from tests.operators.delegated import Shape, play
from webhook import names

GUIDE: Final = Path(__file__).parents[2] / "docs" / "reference" / "delegated-runs.md"
# Seconds for which the pods of an ended run do not change before they count as left.
STILL: Final = 2.0
ENDED: Final = ("Failed", "Succeeded")
# Begins a run in a space with a backend, and yields what the Run reports after each step.
Story: TypeAlias = Callable[[Space, Shape, str], Iterator[str]]
_Seen = TypeVar("_Seen")


def begin(space: Space, shape: Shape, backend: str, **spec: Any) -> LiveRun:
    """A run of a master and two workers that runs."""
    if backend == "native":
        replicas = {
            role: {"count": count, "restartPolicy": "ExitCode"}
            for role, count in shape.replicas.items()
        }
        whole = {"framework": "pytorch", "replicas": replicas, "template": TEMPLATE, **spec}
        space.create(run_manifest("train", **whole))
        run = LiveRun(space, "train")
    else:
        run = play(space, shape, **spec)
    whole_again(run, shape)
    return run


def whole_again(run: LiveRun, shape: Shape) -> None:
    """Wait until all replicas run."""
    run.until_running(*shape.pods)
    run.until_whole(len(shape.pods))


def settled(run: LiveRun, replica: str, before: str) -> str:
    """Wait until the run has ended, or runs again with another pod of the replica; what it says.

    A status may be of the moment before the loss was noticed, so it must stay for a while.
    """

    def seen() -> str | None:
        pod, status = run.live().get(replica), run.status
        replaced = pod is not None and pod["metadata"]["uid"] != before
        whole = (status["phase"], status["replicasReady"]) == ("Running", "3/3")
        return reported(status) if status["phase"] == "Failed" or (replaced and whole) else None

    return unchanged(run, f"{replica} is replaced, or the run has failed", seen) + left(run)


def reported(status: dict[str, Any]) -> str:
    """Phase, reason and counts, as a cell of the table."""
    phase, ended = status["phase"], status["phase"] in ENDED
    reasons = {each["type"]: each["reason"] for each in status["conditions"]}
    failed = sum(role["failed"] for role in status["replicas"].values())
    counts = f"failed {failed}, disruptions {status['disruptions']}, restarts {status['restarts']}"
    return f"{phase}{f' ({reasons[phase]})' if ended else ''}; {counts}"


def left(run: LiveRun) -> str:
    """The pods that run for a while after the end."""
    if run.status["phase"] not in ENDED:
        return ""
    pods = unchanged(run, "its pods do not change", lambda: frozenset(run.live()))
    return f"; {len(pods)} pods run"


def unchanged(run: LiveRun, what: str, see: Callable[[], _Seen | None]) -> _Seen:
    """Wait until one thing is seen for a while; the thing."""
    found, since = see(), time.monotonic()

    def still() -> bool:
        nonlocal found, since
        if (now := see()) != found:
            found, since = now, time.monotonic()
        return found is not None and time.monotonic() - since > STILL

    run.until(what, still)
    assert found is not None
    return found


def exits(code: int, reason: str = "", **spec: Any) -> Story:
    """A worker of a run exits with this code."""

    def live(space: Space, shape: Shape, backend: str) -> Iterator[str]:
        run = begin(space, shape, backend, **spec)
        before = run.live()["worker-1"]["metadata"]["uid"]
        run.ends("worker-1", code, reason)
        yield settled(run, "worker-1", before)

    return live


def a_life(space: Space, shape: Shape, backend: str) -> Iterator[str]:
    """One run from its first pod to its time to live."""
    run = begin(space, shape, backend, ttlSecondsAfterFinished=8)
    yield reported(run.status) + left(run)
    before = run.live()["worker-0"]["metadata"]
    space.delete("pods", before["name"], now=True)
    yield settled(run, "worker-0", before["uid"])
    run.set(suspend=True)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not run.live())
    yield reported(run.status) + left(run)
    run.set(suspend=False)
    whole_again(run, shape)
    yield reported(run.status) + left(run)
    run.ends("master-0", 0)
    run.until_phase("Succeeded")
    yield reported(run.status) + left(run)
    eventually("the Run is gone", lambda: not space.find(names.RUNS, "train"))
    eventually("its pods are gone", lambda: not space.pods())
    yield "no Run, no pod"


def past_the_deadline(space: Space, shape: Shape, backend: str) -> Iterator[str]:
    """A run that takes too long."""
    run = begin(space, shape, backend, activeDeadlineSeconds=8)
    run.until_phase("Failed")
    yield reported(run.status) + left(run)


SCENES: Final = (
    (
        a_life,
        (
            "all pods run",
            "then a worker's pod is deleted",
            "then `suspend: true`",
            "then `suspend: false`",
            "then the master exits with 0",
            "then `ttlSecondsAfterFinished` passes",
        ),
    ),
    (exits(137), ("a worker exits with 137",)),
    (exits(137, "OOMKilled"), ("a worker exceeds its memory limit",)),
    (exits(2), ("a worker exits with 2",)),
    (exits(137, backoffLimit=0), ("a worker exits with 137, `backoffLimit: 0`",)),
    (past_the_deadline, ("`activeDeadlineSeconds` passes",)),
)


def compare(new_namespace: NewNamespace, shape: Shape) -> str:
    """The table of what happens to a run of this shape on both."""
    lines = [f"| what happens | native | `backend: {shape.backend}` |", "|---|---|---|"]
    for live, titles in SCENES:
        native, delegated = (
            list(live(new_namespace({}), shape, each)) for each in ("native", shape.backend)
        )
        for title, one, other in zip(titles, native, delegated, strict=True):
            lines.append(f"| {title} | {one} | {'the same' if one == other else other} |")
    return "\n".join(lines)
