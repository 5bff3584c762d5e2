"""Results as Markdown: tables, and whether what was to be reached was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.arena import ARMS, CONSTANT, FAIRLEAD, FLOOR, NONE, POLICY, SIZES
from tests.bench.engine import POLICIES
from tests.bench.engine import SIZES as ENGINE_SIZES
from tests.bench.spread import Spread, difference, ratio, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.creation import CreationResult
    from tests.bench.engine import EngineResult
    from tests.bench.memory import MemoryResult

TITLES: Final = {
    NONE: "no webhook",
    FLOOR: "fixed-patch webhook in Go",
    POLICY: "MutatingAdmissionPolicy, equivalent",
    CONSTANT: "MutatingAdmissionPolicy, constants, run once",
    FAIRLEAD: "Fairlead, 20 policies",
}
# From the quarter of all reviews on, when every cache has filled; more than this is a leak.
_FLAT_MIB: Final = 2.0


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first column is text, and the others figures."""
    lines = [head, [":--", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(*parts: str) -> str:
    """Paragraphs, tables and lists below each other."""
    return "\n\n".join(parts)


def verdicts(*rows: tuple[str, str, bool]) -> str:
    """A list of what was to be reached, what was seen, and whether it was reached."""
    words = {True: "reached", False: "not reached"}
    return "\n".join(f"- {what}: {seen}, **{words[reached]}**" for what, seen, reached in rows)


def engine(result: EngineResult) -> str:
    """The engine alone: microseconds by number of policies and size of pod."""
    head = ["policies", *(f"{result.bytes_of[size] / 1000:.1f} KB pod" for size in ENGINE_SIZES)]
    rows = [
        [f"{count:,}", *(spread(result.rounds[count, size]).text(0) for size in ENGINE_SIZES)]
        for count in POLICIES
    ]
    ten = result.rounds[10, 10_000]
    middle, growth = spread(ten).median, ratio(result.rounds[1000, 10_000], ten)
    return page(
        "Microseconds a review, median (lowest–highest round):",
        table(head, rows),
        verdicts(
            ("10 KB pod, 10 policies, at most 150 µs", f"{middle:.0f} µs", middle <= 150),
            ("1,000 policies, at most 1.5 times that", growth.text(2), growth.median <= 1.5),
        ),
    )


def layers(result: Mapping[str, list[float]]) -> str:
    """The webhook layer by layer, in one process and without a network."""
    rows = [[name, spread(values).text(0)] for name, values in result.items()]
    return table(["20 policies, 10 KB pod", "µs"], rows)


def creation(result: CreationResult) -> str:
    """Pod creation through the API server."""
    parts = (_latency(result, size) for size in SIZES)
    return page(*parts, _throughput(result), _direct(result))


def added(result: CreationResult, arm: str, size: int) -> list[float]:
    """Milliseconds that the arm adds to the median of the same round without a webhook."""
    return difference(result.latency[arm, size], result.latency[NONE, size])


def _latency(result: CreationResult, size: int) -> str:
    mine = added(result, FAIRLEAD, size)
    ratios: dict[str, Spread] = {
        arm: ratio(mine, added(result, arm, size)) for arm in (FLOOR, POLICY, CONSTANT)
    }
    rows = []
    for arm in ARMS:
        row = [TITLES[arm], spread(result.latency[arm, size]).text(2)]
        row.append("" if arm == NONE else spread(added(result, arm, size)).text(2))
        row.append(ratios[arm].text(2) if arm in ratios else "")
        rows.append(row)
    parts = [
        f"One at a time, {size // 1000} KB pod, milliseconds at the median:",
        table(["", "creation", "added", "Fairlead adds, times this"], rows),
    ]
    if size == SIZES[0]:
        floor, policy = ratios[FLOOR], ratios[POLICY]
        added_by_go = "what Fairlead adds, at most 1.3 times what the Go webhook adds"
        added_by_policy = "no more than what the equivalent MutatingAdmissionPolicy adds"
        parts.append(
            verdicts(
                (added_by_go, floor.text(2), floor.median <= 1.3),
                (added_by_policy, policy.text(2), policy.median <= 1.0),
            )
        )
    return page(*parts)


def _throughput(result: CreationResult) -> str:
    mine = result.throughput[FAIRLEAD]
    rows = [
        [
            TITLES[arm],
            spread(result.throughput[arm]).text(0),
            "" if arm == FAIRLEAD else ratio(mine, result.throughput[arm]).text(2),
            *(
                spread(result.cpu[who, arm]).text(2) if (who, arm) in result.cpu else ""
                for who in ("API server", "webhook")
            ),
        ]
        for arm in ARMS
    ]
    head = ["", "creations a second", "Fairlead's, times this"]
    head += ["CPU ms, API server", "CPU ms, webhook"]
    ratios = {arm: ratio(mine, result.throughput[arm]) for arm in (FLOOR, POLICY)}
    return page(
        "Eight at a time, 10 KB pod:",
        table(head, rows),
        verdicts(
            *(
                (f"throughput no lower than with the {TITLES[arm]}", each.text(2), each.median >= 1)
                for arm, each in ratios.items()
            )
        ),
    )


def _direct(result: CreationResult) -> str:
    rows = [[TITLES[arm], spread(result.direct[arm]).text(0)] for arm in (FLOOR, FAIRLEAD)]
    head = ["The same reviews, posted straight to the webhook over one TLS connection", "µs"]
    return table(head, rows)


def memory(result: MemoryResult) -> str:
    """The memory of the serving process."""
    rows = [[f"{count:,}", f"{mib:.1f}"] for count, mib in result.resident.items()]
    last = max(result.resident)
    quarter = min(count for count in result.resident if count * 4 >= last)
    highest, grown = max(result.resident.values()), result.resident[last] - result.resident[quarter]
    flat = f"flat: at most {_FLAT_MIB:.0f} MiB more after {last:,} reviews than after {quarter:,}"
    return page(
        table(["reviews answered", "MiB resident"], rows),
        f"At {result.rate:,.0f} reviews a second, client and server on the same cores.",
        verdicts(
            ("at most 120 MiB", f"{highest:.0f} MiB", highest <= 120),
            (flat, f"{grown:+.1f} MiB", grown <= _FLAT_MIB),
        ),
    )
