"""What is found, in words: the same for terminals and for comments on pull requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.harmless import one_line
from webhook.cli.layout import shortened
from webhook.comparison.difference import KINDS
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.comparison.difference import FieldChange, Kind, Side
    from webhook.comparison.report import Change, Report, Some
    from webhook.policy.policy_set import PolicySet

TITLES: Final[dict[Kind, str]] = {
    "rejected": "newly rejected",
    "unplaceable": "newly without a node",
    "moved": "placed otherwise",
    "admitted": "no longer rejected",
    "placeable": "no longer without a node",
}
# Of an object's pods with many different fates, or of a quoted pod, no more is shown.
_LONG: Final = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is printed. `nodes` is how many there are; None if they are not known.

    `notes` are about what is not known, or left out.
    """

    old: str
    new: str
    old_set: PolicySet
    new_set: PolicySet
    nodes: int | None
    report: Report
    notes: Sequence[str] = ()


def cut(text: str, most: int = _LONG) -> str:
    """The text in one line that does no harm, no longer than that."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def size(policies: PolicySet) -> str:
    """How many policies a set has, and its hash as stamps carry it."""
    count = len(policies.policies)
    return f"{count} polic{'y' if count == 1 else 'ies'}, set {policies.hash[:HASH_LENGTH]}"


def pods(count: int) -> str:
    """So many pods."""
    return f"{count:,} pod{'' if count == 1 else 's'}"


def counted(report: Report) -> str:
    """How many pods of each kind of difference: `1 newly rejected, 3 placed otherwise`."""
    counts = report.counts
    return ", ".join(f"{counts[kind]:,} {TITLES[kind]}" for kind in KINDS if counts[kind])


def remarks(outcome: Outcome) -> Iterator[str]:
    """What else there is to know of the numbers."""
    report = outcome.report
    if report.live:
        coming = f"by templates of workloads: {report.total - report.live:,}"
        yield f"live, decided on as they are: {report.live:,}; {coming}"
    if report.rejected:
        yield f"{pods(report.rejected)} rejected before and after"
    if report.others:
        yield f"{pods(report.others)} of no run, or not sent to the webhook: no policy is for them"
    if outcome.nodes is None and report.changes:
        yield "whether any node admits them was not asked: give --nodes"


def who(some: Some) -> str:
    """Which pods they are: `TFJob/mnist worker 0, 2-3 of 4`."""
    maker = some.maker
    which = described(maker.part, maker.count, some.indexes, some.more)
    title = f"{maker.title} (live)" if maker.live else maker.title
    return cut(f"{title} {which}" if which else title)


def subjects(change: Change, most: int) -> str:
    """The pods of a change, the first few by name."""
    return shortened([who(some) for some in change.pods[: most + 2]] + _rest(change, most), most)


def _rest(change: Change, most: int) -> list[str]:
    # Only how many there are is wanted of them.
    return [""] * max(len(change.pods) - most - 2, 0)


def field_lines(fields: Sequence[FieldChange]) -> Iterator[tuple[str, str, str]]:
    """Sign, policy and part, and what becomes of the field, as a diff has it."""
    for each in fields:
        author = f"{each.policy}, {each.part}" if each.policy else "the pod itself"
        if not each.old:
            sign, text = "+", each.new
        elif not each.new:
            sign, text = "-", each.old
        elif each.old == each.new:
            sign, text = "~", f"{each.new}, which means something else now"
        else:
            sign, text = "~", f"{each.new} (before: {each.old})"
        yield sign, cut(author), cut(f"{each.field}: {text}")


def reason(change: Change) -> str:
    """Why the pods are rejected now, or were before; empty if they are not."""
    difference = change.difference
    before = difference.kind != "rejected"
    side = difference.old if before else difference.new
    if side.allowed:
        return ""
    return f"{'before: ' if before else ''}{side.reason.removeprefix('fairlead: ')}"


def nodes_line(change: Change) -> str:
    """How many nodes admit the pods, if that is new."""
    old, new = change.difference.old, change.difference.new
    if new.nodes is None or (old.nodes and old.nodes.admitted == new.nodes.admitted):
        return ""
    now = f"{new.nodes.admitted} of {new.nodes.total} nodes admit such a pod{_before(old)}"
    if new.nodes.on_demand:
        return cut(f"{now}; class {', '.join(new.nodes.on_demand)} makes them on demand")
    shut = ", ".join(f"{condition} on {count}" for condition, count in new.nodes.shut)
    return cut(f"{now}: {shut}" if shut else now)


def _before(side: Side) -> str:
    return f", {side.nodes.admitted} did before" if side.nodes else ""


def table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the sums by namespace and policy; only kinds that occur have a column."""
    kinds = [kind for kind in KINDS if report.counts[kind]]
    head = ["namespace", "policy", *(TITLES[kind] for kind in kinds)]
    rows = [
        [cut(row.namespace), row.policy or "-", *(f"{row.counts[kind]:,}" for kind in kinds)]
        for row in report.rows
    ]
    return head, rows
