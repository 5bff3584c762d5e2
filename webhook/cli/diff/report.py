"""Text, JSON and Markdown output of `fairlead diff`; Markdown fits a comment on a pull request.

Longer than 300 lines: the three forms show the same facts and share their wording.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.layout import one_line, shortened, table, wrapped
from webhook.comparison.difference import KINDS
from webhook.shortening import fit
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from webhook.comparison.difference import FieldChange, Kind, Nodes, Side
    from webhook.comparison.difference_report import Change, Report, Some
    from webhook.policy.policy_set import PolicySet

_COLOURS: Final[dict[Kind, str]] = {
    "rejected": "red",
    "unplaceable": "red",
    "moved": "yellow",
    "admitted": "green",
    "placeable": "green",
}
_SIGNS: Final = {"+": "green", "-": "red", "~": "yellow"}
# So many objects are named of those whose pods change alike.
_NAMED: Final = 3
TITLES: Final[dict[Kind, str]] = {
    "rejected": "newly rejected",
    "unplaceable": "newly without a node",
    "moved": "placed differently",
    "admitted": "no longer rejected",
    "placeable": "no longer without a node",
}
# Of an object's pods with many different fates, or of a quoted pod, no more is shown.
_LONG: Final = 300
# GitHub takes comments of 65,536 characters and GitLab of a million; both count the ends of lines.
MAX_CHARACTERS: Final = 60_000
# More is not readable.
_MOST_ROWS: Final = 30
_MOST_CHANGES: Final = 20
_MOST_FIELDS: Final = 8
_MOST_NOTES: Final = 10
_TICKS: Final = re.compile("`+")


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


def in_line(text: str, most: int = _LONG) -> str:
    """The text in one line that does no harm, no longer than that."""
    return fit(one_line(text), most)


def size(policies: PolicySet) -> str:
    """How many policies a set has, and its hash as stamps carry it."""
    count = len(policies.policies)
    return f"{count} polic{'y' if count == 1 else 'ies'}, set {policies.hash[:HASH_LENGTH]}"


def count_pods(count: int) -> str:
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
        yield f"live pods, evaluated as they are: {report.live:,}; {coming}"
    if report.rejected:
        yield f"{count_pods(report.rejected)} rejected before and after"
    if report.others:
        yield (
            f"{count_pods(report.others)} not part of a run, or not sent to the webhook: no policy "
            "applies"
        )
    if outcome.nodes is None and report.changes:
        yield "nodes were not checked: give --nodes"


def who(some: Some) -> str:
    """Which pods they are: `TFJob/mnist worker 0, 2-3 of 4`."""
    maker = some.maker
    which = described(maker.part, maker.count, some.indexes, some.more)
    title = f"{maker.title} (live)" if maker.live else maker.title
    return in_line(f"{title} {which}" if which else title)


def subjects(change: Change, most: int) -> str:
    """The pods of a change, the first few by name."""
    return shortened(
        [who(some) for some in change.pods[: most + 2]] + _placeholders(change, most), most
    )


def _placeholders(change: Change, most: int) -> list[str]:
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
            sign, text = "~", f"{each.new}, which has another meaning now"
        else:
            sign, text = "~", f"{each.new} (before: {each.old})"
        yield sign, in_line(author), in_line(f"{each.field}: {text}")


def rejection_reason(change: Change) -> str:
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
    if new.nodes is None or (old.nodes and _served(old.nodes) == _served(new.nodes)):
        return ""
    now = f"{new.nodes.admitted} of {new.nodes.total} nodes admit such a pod{_before(old)}"
    if new.nodes.on_demand:
        return in_line(f"{now}; class {', '.join(new.nodes.on_demand)} creates them on demand")
    shut = ", ".join(f"{condition} on {count}" for condition, count in new.nodes.shut)
    return in_line(f"{now}: {shut}" if shut else now)


def _served(nodes: Nodes) -> tuple[int, bool]:
    return nodes.admitted, bool(nodes.on_demand)


def _before(side: Side) -> str:
    if side.nodes is None:
        return ""
    if side.nodes.on_demand:
        return f", class {', '.join(side.nodes.on_demand)} made them on demand before"
    return f", {side.nodes.admitted} did before"


def sums(report: Report) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the sums by namespace and policy; only kinds that occur have a column."""
    kinds = [kind for kind in KINDS if report.counts[kind]]
    head = ["namespace", "policy", *(TITLES[kind] for kind in kinds)]
    rows = [
        [in_line(row.namespace), row.policy or "-", *(f"{row.counts[kind]:,}" for kind in kinds)]
        for row in report.rows
    ]
    return head, rows


def lines(outcome: Outcome) -> Iterator[str]:
    """The answer, line by line."""
    report = outcome.report
    yield from table(
        [
            ["OLD", in_line(outcome.old), size(outcome.old_set)],
            ["NEW", in_line(outcome.new), size(outcome.new_set)],
        ],
        0,
    )
    yield ""
    summary = counted(report)
    of_runs = f"{count_pods(report.total)} of runs: {summary or 'no change'}"
    yield click.style(of_runs, bold=True)
    yield from (f"  {remark}" for remark in remarks(outcome))
    if not summary:
        return
    head, rows = sums(report)
    yield ""
    yield from table([head, *rows], 2)
    kind: Kind | None = None
    for change in report.changes:
        if change.difference.kind != kind:
            kind = change.difference.kind
            yield ""
            pods = count_pods(report.counts[kind])
            title = f"{TITLES[kind].capitalize()}: {pods}"
            yield click.style(title, fg=_COLOURS[kind], bold=True)
        yield from _change(change)


def _change(change: Change) -> Iterator[str]:
    pods = f"{count_pods(change.count)} in {in_line(change.namespace)}"
    who = f"{pods}: {subjects(change, _NAMED)}"
    first, *more = wrapped(who, 4)
    yield f"  {first}"
    yield from (f"    {line}" for line in more)
    if reason := rejection_reason(change):
        yield from (f"    {line}" for line in wrapped(in_line(reason), 4))
    else:
        rows = [
            [click.style(sign, fg=_SIGNS[sign]), author, text]
            for sign, author, text in field_lines(change.difference.fields)
        ]
        yield from table(rows, 4)
    if nodes := nodes_line(change):
        yield from (f"    {line}" for line in wrapped(nodes, 4))


def document(outcome: Outcome) -> dict[str, Any]:
    """The whole answer."""
    report = outcome.report
    return {
        "old": _set_document(outcome.old, outcome.old_set),
        "new": _set_document(outcome.new, outcome.new_set),
        "nodes": outcome.nodes,
        "notes": list(outcome.notes),
        "pods": {
            "total": report.total,
            "live": report.live,
            "ofNoRun": report.others,
            "rejectedBeforeAndAfter": report.rejected,
            "differing": report.differing,
            "withoutNode": report.stranded,
            **_counts(report.counts),
        },
        "summary": [
            {"namespace": row.namespace, "policy": row.policy or None, **_counts(row.counts)}
            for row in report.rows
        ],
        "changes": [_change_document(change) for change in report.changes],
    }


def _set_document(source: str, policies: PolicySet) -> dict[str, Any]:
    return {"source": source, "set": policies.hash, "policies": len(policies.policies)}


def _counts(counts: Counter[Kind]) -> dict[str, int]:
    return {kind: counts[kind] for kind in KINDS}


def _change_document(change: Change) -> dict[str, Any]:
    difference = change.difference
    return {
        "change": difference.kind,
        "withoutNode": difference.stranded,
        "namespace": change.namespace,
        "count": change.count,
        "policies": list(difference.policies),
        "fields": [field._asdict() for field in difference.fields],
        "old": _side(difference.old),
        "new": _side(difference.new),
        "objects": [_object(some) for some in change.pods],
    }


def _side(side: Side) -> dict[str, Any]:
    nodes = side.nodes
    return {
        "result": side.result,
        "reason": side.reason,
        "nodes": nodes.admitted if nodes else None,
        "shut": [{"condition": c, "nodes": n} for c, n in nodes.shut] if nodes else [],
        "onDemand": list(nodes.on_demand) if nodes else [],
    }


def _object(some: Some) -> dict[str, Any]:
    maker = some.maker
    return {
        "object": maker.title,
        "pods": described(maker.part, maker.count, some.indexes, some.more),
        "indexes": list(some.indexes),
        "count": some.count,
        "live": maker.live,
        "place": maker.place,
    }


def markdown(outcome: Outcome) -> str:
    """The comment. What is left out is counted."""
    report = outcome.report
    summary = counted(report)
    head = [
        f"### Placement policies: {_code(outcome.old)} → {_code(outcome.new)}",
        "",
        f"**{count_pods(report.total)} of runs: {summary or 'no change'}.**",
        *(f"{remark[0].upper()}{remark[1:]}." for remark in remarks(outcome)),
    ]
    head += _markdown_notes(outcome.notes)
    if summary:
        head += ["", *_markdown_table(*sums(report))]
    text = "\n".join(head) + "\n"
    for shown, change in enumerate(report.changes):
        part = "\n".join(_markdown_change(change)) + "\n"
        if shown >= _MOST_CHANGES or len(text) + len(part) > MAX_CHARACTERS:
            left = report.changes[shown:]
            count = count_pods(sum(each.count for each in left))
            return f"{text}\n…and {len(left):,} more kinds of change, of {count}.\n"
        text += part
    return text


def _markdown_notes(notes: Sequence[str]) -> Iterator[str]:
    """What is not known, or left out: the answer is not about that."""
    if notes:
        yield ""
        yield "Not known, or left out:"
        yield ""
    yield from (f"- {_code(note)}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"- and {len(notes) - _MOST_NOTES:,} more"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 2}{'--:|' * (len(head) - 2)}"
    for row in rows[:_MOST_ROWS]:
        yield f"| {' | '.join([*map(_cell, row[:2]), *row[2:]])} |"
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"…and {len(rows) - _MOST_ROWS:,} more rows."


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|") if text != "-" else text


def _markdown_change(change: Change) -> Iterator[str]:
    """Format text from others as code, so that it is not read as Markdown."""
    title = TITLES[change.difference.kind].capitalize()
    yield ""
    count = count_pods(change.count)
    who = _code(subjects(change, _NAMED))
    yield f"**{title}**, {count} in {_code(change.namespace)}: {who}"
    lines = [*_markdown_lines(change)]
    if lines:
        fence = "`" * max(3, 1 + max(map(_longest_run, lines)))
        yield ""
        yield f"{fence}diff"
        yield from lines
        yield fence


def _markdown_lines(change: Change) -> Iterator[str]:
    if reason := rejection_reason(change):
        sign = "-" if change.difference.kind == "rejected" else "+"
        yield f"{sign} {in_line(reason)}"
    else:
        fields = change.difference.fields
        for sign, author, text in field_lines(fields[:_MOST_FIELDS]):
            # A diff knows no third sign; Markdown's readers colour this one.
            yield f"{'!' if sign == '~' else sign} {author}: {text}"
        if len(fields) > _MOST_FIELDS:
            yield f"  and {len(fields) - _MOST_FIELDS} more fields"
    if nodes := nodes_line(change):
        yield f"# {nodes}"


def _code(text: str) -> str:
    """The text as code, whatever is in it (CommonMark 0.31, 6.1)."""
    line = in_line(text, 1000)
    ticks = "`" * (1 + _longest_run(line))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{blank}{line}{blank}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
