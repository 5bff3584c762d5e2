"""What was measured of runs, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from tests.bench import training_operator
from tests.bench.gangs import ARMS, JOB, PYTORCH_JOB, RUN, TITLES
from tests.bench.run_costs import EMPTY, FEW, FINISHED, LIVE, PODS_A_RUN, RunCostsResult
from tests.bench.run_creation import RunCreationResult
from tests.bench.runs_arena import CONTROLLER
from tests.bench.spread import Spread, ratio, spread
from tests.bench.tables import page, table, verdicts

# Processes, as the columns call them.
_PROCESSES: Final = {
    "etcd": "etcd",
    "kube-apiserver": "API server",
    "fairlead": "webhook",
    "kube-controller-manager": "controller manager",
    CONTROLLER: "Run controller",
    training_operator.NAME: "training operator",
}
_RUN_TO_JOB: Final = 1.25
_RUN_TO_PYTORCH_JOB: Final = 0.1
# A pod of a large run may take so many times as long as one of a run of a thousand.
_PROPORTION: Final = 1.25
_MIB: Final = 200
# An event beside many runs may cost so many times what it costs beside few.
_GROWTH: Final = 1.25
_BEYOND_MS: Final = 200


def creation(result: RunCreationResult) -> str:
    """From an object's creation to its last pod's."""
    counts = sorted({count for _, count in result.last})
    return page(
        "Seconds until the last pod is there, median (lowest–highest round):",
        _times(result, counts),
        verdicts(*_verdicts(result, counts)),
        f"Milliseconds of processor time a pod, at {counts[-1]:,} pods:",
        _processor_time(result, counts[-1]),
    )


def _times(result: RunCreationResult, counts: Sequence[int]) -> str:
    head = ["pods", "rounds (PyTorchJob's)", *(TITLES[arm] for arm in ARMS)]
    head += ["Run / Job", "Run / PyTorchJob", "controller, MiB"]
    rows = [
        [
            f"{count:,}",
            f"{len(result.last[RUN, count])} ({len(result.last.get((PYTORCH_JOB, count), ()))})",
            *(
                spread(result.last[arm, count]).text(2) if (arm, count) in result.last else "–"
                for arm in ARMS
            ),
            _ratio(result, JOB, count).text(2),
            _ratio(result, PYTORCH_JOB, count).text(3)
            if (PYTORCH_JOB, count) in result.last
            else "–",
            spread(result.resident[count]).text(0) if count in result.resident else "–",
        ]
        for count in counts
    ]
    return table(head, rows)


def _verdicts(result: RunCreationResult, counts: Sequence[int]) -> Iterator[tuple[str, str, bool]]:
    for other, most, digits in ((JOB, _RUN_TO_JOB, 2), (PYTORCH_JOB, _RUN_TO_PYTORCH_JOB, 3)):
        for count in counts:
            if (other, count) in result.last:
                seen = _ratio(result, other, count)
                what = f"{count:,} pods, at most {most} times the {TITLES[other]}'s time"
                yield what, seen.text(digits), seen.median <= most
    middle, large = counts[-2:]
    growth = {arm: _each(result, arm, large) / _each(result, arm, middle) for arm in (RUN, JOB)}
    what = f"a pod of {large:,} takes at most {_PROPORTION} times as long as one of {middle:,}"
    seen_growth = f"{growth[RUN]:.2f}; the Job's {growth[JOB]:.2f}"
    yield f"in proportion: {what}", seen_growth, growth[RUN] <= _PROPORTION
    if large in result.resident:
        mib = max(result.resident[large])
        what = f"the controller's memory with {large:,} pods of one run, at most {_MIB} MiB"
        yield what, f"{mib:.0f} MiB", mib <= _MIB


def _ratio(result: RunCreationResult, other: str, count: int) -> Spread:
    """The Run's time to the other's, of the rounds in which there was one."""
    below = result.last[other, count]
    return ratio(result.last[RUN, count][: len(below)], below)


def _each(result: RunCreationResult, arm: str, count: int) -> float:
    """Seconds a pod, at the median."""
    return statistics.median(result.last[arm, count]) / count


def _processor_time(result: RunCreationResult, count: int) -> str:
    rows = []
    for arm in ARMS:
        if (arm, count) not in result.last:
            continue
        spent = [
            statistics.median(result.cpu[process, arm, count])
            if (process, arm, count) in result.cpu
            else None
            for process in _PROCESSES
        ]
        sum_ = sum(ms for ms in spent if ms is not None)
        rows.append([TITLES[arm], *("" if ms is None else f"{ms:.2f}" for ms in (*spent, sum_))])
    return table(["", *_PROCESSES.values(), "together"], rows)


def costs(result: RunCostsResult) -> str:
    """Memory and processor time of the controller."""
    live = result.runs * PODS_A_RUN
    rows = [
        [title, f"{result.resident[what]:.0f}", f"{result.idle[what]:.1f}"]
        for what, title in (
            (EMPTY, "no runs"),
            (LIVE, f"{result.runs:,} runs, {live:,} live pods"),
            (
                FINISHED,
                f"{result.runs:,} finished runs and their pods, after a restart of the process",
            ),
        )
    ]
    few, many = result.event[FEW], result.event[result.runs]
    growth = ratio(many, few)
    growing, held = "an event's work does not grow with the number of runs", result.resident[LIVE]
    return page(
        table(["", "MiB resident", "CPU ms a second, at rest"], rows),
        "One pod becomes ready, or is so no more, and the run's status says so:",
        table(
            ["runs", "CPU ms an event"],
            [[f"{FEW}", spread(few).text(2)], [f"{result.runs:,}", spread(many).text(2)]],
        ),
        verdicts(
            (
                f"at most {_MIB} MiB with {live:,} live pods",
                f"{held:.0f} MiB",
                held <= _MIB,
            ),
            (f"{growing}: at most {_GROWTH} times", growth.text(2), growth.median <= _GROWTH),
        ),
    )


def replacement(beyond: Sequence[float]) -> str:
    """From a failure to the new pod."""
    seen = spread(beyond)
    figures = f"median (lowest–highest) of {len(beyond)}: {seen.text(0)}"
    what = f"at rest, under {_BEYOND_MS} ms beyond the backoff"
    return page(
        f"Milliseconds beyond the backoff of 10 s, {figures}",
        verdicts((what, f"{seen.high:.0f} ms at most", seen.high < _BEYOND_MS)),
    )
