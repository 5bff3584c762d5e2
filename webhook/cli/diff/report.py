"""Text, JSON and Markdown output of `fairlead diff`; Markdown fits a comment on a pull request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.layout import hanging, table
from webhook.comparison.difference import KINDS, FieldChange, Kind, Nodes, Side
from webhook.shortening import count_text, fit, one_line, shortened
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from webhook.comparison.difference_report import Change, PodGroup, Report
    from webhook.policy.policy_set import PolicySet

_COLOURS: Final[dict[Kind, str]] = {
    "rejected": "red",
    "unplaceable": "red",
    "moved": "yellow",
    "admitted": "green",
    "placeable": "green",
}
_SIGNS: Final = {"+": "green", "-": "red", "~": "yellow"}
# Maximum number of objects named for one change.
_NAMED: Final = 3
TITLES: Final[dict[Kind, str]] = {
    "rejected": "newly rejected",
    "unplaceable": "newly without a node",
    "moved": "placed differently",
    "admitted": "no longer rejected",
    "placeable": "no longer without a node",
}
# Maximum length of a line with text that others wrote.
_LONG: Final = 300
# GitHub accepts comments of 65,536 characters, GitLab of a million; both count line ends.
MAX_CHARACTERS: Final = 60_000
# Limits of the Markdown comment.
_MOST_ROWS: Final = 30
_MOST_CHANGES: Final = 20
_MOST_FIELDS: Final = 8
_MOST_NOTES: Final = 10
_TICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is printed. `nodes` is the number of nodes; None if they are unknown.

    `notes` name what is unknown or left out.
    """

    old: str
    new: str
    old_set: PolicySet
    new_set: PolicySet
    nodes: int | None
    report: Report
    notes: Sequence[str] = ()


def safe_line(text: str, most: int = _LONG) -> str:
    """Return the text as one line without control characters, of at most this length."""
    return fit(one_line(text), most)


def size(policies: PolicySet) -> str:
    """Return the number of policies of a set, and its hash as in stamps."""
    return f"{count_text(len(policies.policies), 'policy')}, set {policies.hash[:HASH_LENGTH]}"


def difference_counts(report: Report) -> str:
    """Return the number of pods by kind of difference: `1 newly rejected, 3 placed differently`."""
    counts = report.counts
    return ", ".join(f"{counts[kind]:,} {TITLES[kind]}" for kind in KINDS if counts[kind])


def summary_notes(outcome: Outcome) -> Iterator[str]:
    """Yield further facts about the numbers."""
    report = outcome.report
    if report.live:
        coming = f"by templates of workloads: {report.total - report.live:,}"
        yield f"live pods, evaluated as they are: {report.live:,}; {coming}"
    if report.rejected:
        yield f"{count_text(report.rejected, 'pod')} rejected before and after"
    if report.others:
        yield (
            f"{count_text(report.others, 'pod')} not part of a run, or not sent to the webhook: no "
            "policy applies"
        )
    if outcome.nodes is None and report.changes:
        yield "nodes were not checked: give --nodes"


def pod_names(group: PodGroup) -> str:
    """Return the names of pods: `TFJob/mnist worker 0, 2-3 of 4`."""
    maker = group.maker
    which = described(maker.part, maker.count, group.indexes, group.more)
    title = f"{maker.title} (live)" if maker.live else maker.title
    return safe_line(f"{title} {which}" if which else title)


def subjects(change: Change) -> str:
    """Return the pods of a change, the first few by name."""
    named = [pod_names(group) for group in change.pods[: _NAMED + 2]]
    # Of the others, only the count is needed.
    return shortened(named + [""] * (len(change.pods) - len(named)), _NAMED)


def field_lines(fields: Sequence[FieldChange]) -> Iterator[tuple[str, str, str]]:
    """Yield the sign, the policy and part, and the field's change, in the form of a diff."""
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
        yield sign, safe_line(author), safe_line(f"{each.field}: {text}")


def rejection_reason(change: Change) -> str:
    """Return why the pods are rejected now, or were before; empty if they were not."""
    difference = change.difference
    before = difference.kind != "rejected"
    side = difference.old if before else difference.new
    if side.allowed:
        return ""
    return f"{'before: ' if before else ''}{side.reason.removeprefix('fairlead: ')}"


def nodes_line(change: Change) -> str:
    """Return the number of nodes that admit the pods, if it changed."""
    old, new = change.difference.old, change.difference.new
    if new.nodes is None or (old.nodes and _served(old.nodes) == _served(new.nodes)):
        return ""
    now = f"{new.nodes.admitted} of {new.nodes.total} nodes admit such a pod{_before(old)}"
    if new.nodes.on_demand:
        return safe_line(f"{now}; class {', '.join(new.nodes.on_demand)} creates them on demand")
    shut = ", ".join(f"{condition} on {count}" for condition, count in new.nodes.shut)
    return safe_line(f"{now}: {shut}" if shut else now)


def _served(nodes: Nodes) -> tuple[int, bool]:
    return nodes.admitted, bool(nodes.on_demand)


def _before(side: Side) -> str:
    if side.nodes is None:
        return ""
    if side.nodes.on_demand:
        return f", class {', '.join(side.nodes.on_demand)} made them on demand before"
    return f", {side.nodes.admitted} did before"


def sum_table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the sums by namespace and policy; only occurring kinds."""
    kinds = [kind for kind in KINDS if report.counts[kind]]
    head = ["namespace", "policy", *(TITLES[kind] for kind in kinds)]
    rows = [
        [safe_line(row.namespace), row.policy or "-", *(f"{row.counts[kind]:,}" for kind in kinds)]
        for row in report.rows
    ]
    return head, rows


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield the report in lines."""
    report = outcome.report
    yield from table(
        [
            ["OLD", safe_line(outcome.old), size(outcome.old_set)],
            ["NEW", safe_line(outcome.new), size(outcome.new_set)],
        ],
        0,
    )
    yield ""
    summary = difference_counts(report)
    of_runs = f"{count_text(report.total, 'pod')} of runs: {summary or 'no change'}"
    yield click.style(of_runs, bold=True)
    yield from (f"  {remark}" for remark in summary_notes(outcome))
    if not summary:
        return
    head, rows = sum_table(report)
    yield ""
    yield from table([head, *rows], 2)
    kind: Kind | None = None
    for change in report.changes:
        if change.difference.kind != kind:
            kind = change.difference.kind
            yield ""
            pods = count_text(report.counts[kind], "pod")
            title = f"{TITLES[kind].capitalize()}: {pods}"
            yield click.style(title, fg=_COLOURS[kind], bold=True)
        yield from _change(change)


def _change(change: Change) -> Iterator[str]:
    pods = f"{count_text(change.count, 'pod')} in {safe_line(change.namespace)}"
    who = f"{pods}: {subjects(change)}"
    yield from hanging(who, 4, " " * 2)
    if reason := rejection_reason(change):
        yield from hanging(safe_line(reason), 4)
    else:
        rows = [
            [click.style(sign, fg=_SIGNS[sign]), author, text]
            for sign, author, text in field_lines(change.difference.fields)
        ]
        yield from table(rows, 4)
    if nodes := nodes_line(change):
        yield from hanging(nodes, 4)


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the report as JSON."""
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


def _object(group: PodGroup) -> dict[str, Any]:
    maker = group.maker
    return {
        "object": maker.title,
        "pods": described(maker.part, maker.count, group.indexes, group.more),
        "indexes": list(group.indexes),
        "count": group.count,
        "live": maker.live,
        "place": maker.place,
    }


def markdown(outcome: Outcome) -> str:
    """Return the report as a comment in Markdown. Omitted parts are counted."""
    report = outcome.report
    summary = difference_counts(report)
    head = [
        f"### Placement policies: {_code(outcome.old)} → {_code(outcome.new)}",
        "",
        f"**{count_text(report.total, 'pod')} of runs: {summary or 'no change'}.**",
        *(f"{remark[0].upper()}{remark[1:]}." for remark in summary_notes(outcome)),
    ]
    head += _markdown_notes(outcome.notes)
    if summary:
        head += ["", *_markdown_table(*sum_table(report))]
    text = "\n".join(head) + "\n"
    for shown, change in enumerate(report.changes):
        part = "\n".join(_markdown_change(change)) + "\n"
        if shown >= _MOST_CHANGES or len(text) + len(part) > MAX_CHARACTERS:
            left = report.changes[shown:]
            count = count_text(sum(each.count for each in left), "pod")
            return f"{text}\n…and {len(left):,} more kinds of change, of {count}.\n"
        text += part
    return text


def _markdown_notes(notes: Sequence[str]) -> Iterator[str]:
    """Yield the notes about what is unknown or left out."""
    if notes:
        yield ""
        yield "Unknown, or left out:"
        yield ""
    yield from (f"- {_code(note)}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"- and {len(notes) - _MOST_NOTES:,} more"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 2}{'--:|' * (len(head) - 2)}"
    for row in rows[:_MOST_ROWS]:
        first = [_code(cell).replace("|", "\\|") if cell != "-" else cell for cell in row[:2]]
        yield f"| {' | '.join([*first, *row[2:]])} |"
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"…and {len(rows) - _MOST_ROWS:,} more rows."


def _markdown_change(change: Change) -> Iterator[str]:
    """Yield one change; text that others wrote is in code spans, so that it is not Markdown."""
    title = TITLES[change.difference.kind].capitalize()
    yield ""
    count = count_text(change.count, "pod")
    who = _code(subjects(change))
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
        yield f"{sign} {safe_line(reason)}"
    else:
        fields = change.difference.fields
        for sign, author, text in field_lines(fields[:_MOST_FIELDS]):
            # A diff has no third sign; Markdown viewers colour this one.
            yield f"{'!' if sign == '~' else sign} {author}: {text}"
        if len(fields) > _MOST_FIELDS:
            yield f"  and {len(fields) - _MOST_FIELDS} more fields"
    if nodes := nodes_line(change):
        yield f"# {nodes}"


def _code(text: str) -> str:
    """Return the text as a code span, also with backticks in it (CommonMark 0.31, 6.1)."""
    line = safe_line(text, 1000)
    ticks = "`" * (1 + _longest_run(line))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{blank}{line}{blank}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
