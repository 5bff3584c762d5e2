"""Text, Markdown and HTML output of `fairlead diff`; Markdown fits a comment on a pull request.

Above 300 lines: three forms of one report.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from webhook.comparison.difference import KINDS, FieldChange, Kind, Side
from webhook.decision.stamp import HASH_LENGTH
from webhook.evaluation.answer import NOT_CHECKED
from webhook.shortening import count_text, fit, one_line, shortened
from webhook.text.html import html_templates
from webhook.text.layout import aligned, hanging, sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.comparison.difference_report import Change, PodGroup, Report, Row, Totals
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
# Objects that a page names for one change; -o json has all.
_MOST_NAMED: Final = 200
_TICKS: Final = re.compile("`+")


class ComparedSet(NamedTuple):
    """One of the two sets: where it is from, its hash, and the number of its policies."""

    source: str
    set: str
    policies: int


class Outcome(NamedTuple):
    """Everything that is printed; its fields are the keys of the JSON document.

    `answer` is all of it in one sentence. `nodes` is the number of nodes; None if they are
    unknown. `unknown` names what is not known or left out, and could change the answer; `notes`
    name what else the comparison assumes. The last three are those of a Report.
    """

    answer: str
    old: ComparedSet
    new: ComparedSet
    nodes: int | None
    notes: Sequence[str]
    unknown: Sequence[str]
    pods: Totals
    summary: Sequence[Row]
    changes: Sequence[Change]


class ShownChange(NamedTuple):
    """A change, as pages show it.

    names: its pods by object; `more`: how many objects are not named. rows: as `change_rows` has
    them.
    """

    change: Change
    title: str
    names: Sequence[str]
    more: int
    rows: Sequence[tuple[str, str, str]]


def shown(change: Change, nodes: int | None) -> ShownChange:
    """Return the change for a page; `nodes` is the number of all."""
    return ShownChange(
        change=change,
        title=TITLES[change.change],
        names=list(map(_pod_names, change.objects[:_MOST_NAMED])),
        more=max(0, len(change.objects) - _MOST_NAMED),
        rows=list(change_rows(change, nodes, len(change.fields))),
    )


class AlikeChanges(NamedTuple):
    """Changes of one kind, by the same policies and in the same fields, in several namespaces."""

    title: str
    pods: str
    changes: Sequence[ShownChange]


def alike(changes: Iterable[ShownChange]) -> Iterator[AlikeChanges]:
    """Yield the changes in groups that differ in nothing but namespace and objects, in order."""
    groups: dict[object, list[ShownChange]] = {}
    for shown_change in changes:
        key = (shown_change.title, tuple(shown_change.change.policies), tuple(shown_change.rows))
        groups.setdefault(key, []).append(shown_change)
    for group in groups.values():
        total = sum(shown_change.change.count for shown_change in group)
        namespaces = [_safe_line(shown_change.change.namespace) for shown_change in group]
        where = namespaces[0] if len(group) == 1 else f"{len(group):,} namespaces"
        yield AlikeChanges(group[0].title, f"{count_text(total, 'pod')} in {where}", group)


def outcome_of(
    old: tuple[str, PolicySet],
    new: tuple[str, PolicySet],
    nodes: int | None,
    notes: Sequence[str],
    unknown: Sequence[str],
    report: Report,
) -> Outcome:
    was, now = (
        ComparedSet(source, policy_set.hash, len(policy_set.policies))
        for source, policy_set in (old, new)
    )
    answer = answer_of(report, nodes, notes, unknown)
    return Outcome(answer, was, now, nodes, notes, unknown, *report)


def _safe_line(text: str, most: int = _LONG) -> str:
    return fit(one_line(text), most)


def answer_of(
    report: Report, nodes: int | None, notes: Sequence[str], unknown: Sequence[str]
) -> str:
    """Return the number of pods by kind, of objects that lose room, and what is not known of them.

    As in `5 pods of runs: 1 newly rejected, 4 unchanged; nodes not checked; 1 unknown fact, which
    could change this`.
    """
    pods = report.pods
    counts = {TITLES[kind]: getattr(pods, kind) for kind in KINDS}
    counts["rejected before and after"] = pods.rejected_before_and_after
    counts["unchanged"] = pods.total - pods.differing - pods.rejected_before_and_after
    texts = [f"{count:,} {title}" for title, count in counts.items() if count]
    if pods.total and pods.total == counts["unchanged"]:
        texts = ["no change"]
    of_runs = f"{count_text(pods.total, 'pod')} of runs"
    parts = [f"{of_runs}: {', '.join(texts)}" if texts else "no pod of a run was compared"]
    losing = {
        (change.namespace, group.object)
        for change in report.changes
        if change.takes_room
        for group in change.objects
    }
    if losing:
        which = f"{count_text(len(losing), 'object')} that could before"
        parts.append(f"{which} cannot run all pods at one time")
    parts += [NOT_CHECKED] if nodes is None and texts else []
    facts = count_text(len(unknown), "unknown fact")
    parts += [f"{facts}, which could change this"] if unknown else []
    parts += [f"see {count_text(len(notes), 'note')}"] if notes else []
    return "; ".join(parts)


def remarks(outcome: Outcome) -> Iterator[str]:
    """Yield which pods were compared, and what was not."""
    pods = outcome.pods
    if pods.live:
        coming = f"by templates of workloads: {pods.total - pods.live:,}"
        yield f"live pods, evaluated as they are: {pods.live:,}; {coming}"
    if pods.of_no_run:
        yield (
            f"{count_text(pods.of_no_run, 'pod')} not part of a run, or not sent to the webhook: "
            "no policy applies"
        )
    nowhere = sum(
        change.count for change in outcome.changes if change.old.stranded and change.new.stranded
    )
    if nowhere:
        have = "has" if nowhere == 1 else "have"
        yield f"of the pods that differ, {nowhere:,} {have} no node before and after"


def _pod_names(group: PodGroup) -> str:
    title = f"{group.object} (live)" if group.live else group.object
    return _safe_line(f"{title} {group.pods}" if group.pods else title)


def subjects(change: Change) -> str:
    """Return the pods of a change, the first few by name: `TFJob/mnist worker 0, 2-3 of 4`."""
    named = [_pod_names(group) for group in change.objects[: _NAMED + 2]]
    # Of the others, only the count is needed.
    return shortened(named + [""] * (len(change.objects) - len(named)), _NAMED)


def _field_lines(fields: Sequence[FieldChange]) -> Iterator[tuple[str, str, str]]:
    """Yield the sign, the policy and part, and the field's change, in the form of a diff."""
    for field in fields:
        author = f"{field.policy}, {field.part}" if field.policy else "the pod itself"
        if not field.old:
            sign, text = "+", field.new
        elif not field.new:
            sign, text = "-", field.old
        elif field.old == field.new:
            sign, text = "~", f"{field.new}, which has another meaning now"
        else:
            sign, text = "~", f"{field.new} (before: {field.old})"
        yield sign, _safe_line(author), _safe_line(f"{field.field}: {text}")


def _rejection_reason(change: Change) -> str:
    before = change.change != "rejected"
    side = change.old if before else change.new
    if side.allowed:
        return ""
    reason = side.reason.removeprefix("fairlead: ")
    return _safe_line(f"{'before: ' if before else ''}{reason}")


def _nodes_line(change: Change, total: int | None) -> str:
    old, new = change.old, change.new
    alike = (old.nodes, bool(old.on_demand)) == (new.nodes, bool(new.on_demand))
    if new.nodes is None or alike:
        return ""
    now = f"{new.nodes} of {total} nodes admit such a pod{_before(old)}"
    if new.on_demand:
        return _safe_line(f"{now}; class {', '.join(new.on_demand)} creates them on demand")
    shut = ", ".join(f"{condition} on {count}" for condition, count in new.shut)
    return _safe_line(f"{now}: {shut}" if shut else now)


def _room_line(change: Change) -> str:
    old, new = change.old.room, change.new.room
    if old == new:
        return ""
    now = new or "no limit found for all pods at one time"
    return _safe_line(f"{now}; before: {old or 'no limit found'}")


def _before(side: Side) -> str:
    if side.on_demand:
        return f", class {', '.join(side.on_demand)} made them on demand before"
    return "" if side.nodes is None else f", {side.nodes} did before"


def _sum_rows(outcome: Outcome) -> list[list[str]]:
    """Return the sums by namespace and policy, below their heads; only occurring kinds."""
    kinds = [kind for kind in KINDS if getattr(outcome.pods, kind)]
    return [
        ["namespace", "policy", *(TITLES[kind] for kind in kinds)],
        *(
            [
                _safe_line(row.namespace),
                row.policy or "-",
                *(f"{getattr(row, kind):,}" for kind in kinds),
            ]
            for row in outcome.summary
        ),
    ]


def lines(outcome: Outcome) -> Iterator[str]:
    yield from sentence(outcome.answer)
    yield ""
    yield from aligned(
        [
            [
                name,
                _safe_line(compared_set.source),
                (
                    f"{count_text(compared_set.policies, 'policy')}, set "
                    f"{compared_set.set[:HASH_LENGTH]}"
                ),
            ]
            for name, compared_set in (("OLD", outcome.old), ("NEW", outcome.new))
        ],
        0,
    )
    yield from (f"  {remark}" for remark in remarks(outcome))
    if outcome.changes:
        yield ""
        head, *rows = _sum_rows(outcome)
        yield from table(head, rows)
    kind: Kind | None = None
    for change in outcome.changes:
        if change.change != kind:
            kind = change.change
            yield ""
            pods = count_text(getattr(outcome.pods, kind), "pod")
            title = f"{TITLES[kind].capitalize()}: {pods}"
            yield click.style(title, fg=_COLOURS[kind], bold=True)
        yield from _change(change, outcome.nodes)


def _change(change: Change, total: int | None) -> Iterator[str]:
    pods = f"{count_text(change.count, 'pod')} in {_safe_line(change.namespace)}"
    yield from hanging(f"{pods}: {subjects(change)}", 4, " " * 2)
    rows = [*change_rows(change, total, len(change.fields))]
    fields = [[click.style(row[0], fg=_SIGNS[row[0]]), *row[1:]] for row in rows if row[1]]
    yield from aligned(fields, 4)
    for _, author, text in rows:
        yield from hanging(text, 4) if not author else ()


def change_rows(change: Change, total: int | None, most: int) -> Iterator[tuple[str, str, str]]:
    """Yield a sign, the policy and part, and a text, in the form of a diff; `most` fields."""
    if reason := _rejection_reason(change):
        yield "-" if change.change == "rejected" else "+", "", reason
    else:
        yield from _field_lines(change.fields[:most])
        if more := len(change.fields[most:]):
            yield " ", "", f"and {more} more fields"
    if nodes := _nodes_line(change, total):
        yield "#", "", nodes
    if room := _room_line(change):
        yield "#", "", room


def markdown(outcome: Outcome) -> str:
    """Return the report as a comment in Markdown. Omitted parts are counted."""
    old, new = _code(outcome.old.source), _code(outcome.new.source)
    head = [
        f"### Placement policies: {old} → {new}",
        "",
        f"**{outcome.answer}.**",
        *(f"{remark[0].upper()}{remark[1:]}." for remark in remarks(outcome)),
        *_markdown_notes("Unknown, or left out:", outcome.unknown),
        *_markdown_notes("Notes:", outcome.notes),
    ]
    if outcome.changes:
        head += ["", *_markdown_table(*_sum_rows(outcome))]
    text = "\n".join(head) + "\n"
    for shown, change in enumerate(outcome.changes):
        part = "\n".join(_markdown_change(change, outcome.nodes)) + "\n"
        if shown >= _MOST_CHANGES or len(text) + len(part) > MAX_CHARACTERS:
            left = outcome.changes[shown:]
            count = count_text(sum(change.count for change in left), "pod")
            return f"{text}\n…and {len(left):,} more kinds of change, of {count}.\n"
        text += part
    return text


def html(outcome: Outcome) -> str:
    """Return the report as one page, with every change; it loads nothing and runs nothing."""
    head, *rows = _sum_rows(outcome)
    return (
        html_templates(Path(__file__).parent)
        .get_template("page.html")
        .render(
            outcome=outcome,
            remarks=list(remarks(outcome)),
            head=head,
            rows=rows,
            groups=list(alike(shown(change, outcome.nodes) for change in outcome.changes)),
        )
    )


def _markdown_notes(title: str, notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield ""
        yield title
        yield ""
    yield from (f"- {_code(note)}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"- and {len(notes) - _MOST_NOTES:,} more"


def _markdown_table(head: Sequence[str], *rows: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 2}{'--:|' * (len(head) - 2)}"
    for row in rows[:_MOST_ROWS]:
        first = [_code(cell).replace("|", "\\|") if cell != "-" else cell for cell in row[:2]]
        yield f"| {' | '.join([*first, *row[2:]])} |"
    if len(rows) > _MOST_ROWS:
        yield ""
        yield f"…and {len(rows) - _MOST_ROWS:,} more rows."


def _markdown_change(change: Change, total: int | None) -> Iterator[str]:
    """Yield one change; text that others wrote is in code spans, so that it is not Markdown."""
    title = TITLES[change.change].capitalize()
    yield ""
    count = count_text(change.count, "pod")
    yield f"**{title}**, {count} in {_code(change.namespace)}: {_code(subjects(change))}"
    lines = [
        # A diff has no third sign; Markdown viewers colour this one.
        f"{'!' if sign == '~' else sign} {f'{author}: ' if author else ''}{text}"
        for sign, author, text in change_rows(change, total, _MOST_FIELDS)
    ]
    if lines:
        fence = "`" * max(3, 1 + max(map(_longest_run, lines)))
        yield from ("", f"{fence}diff", *lines, fence)


def _code(text: str) -> str:
    """Return the text as a code span, also with backticks in it (CommonMark 0.31, 6.1)."""
    line = _safe_line(text, 1000)
    ticks = "`" * (1 + _longest_run(line))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{blank}{line}{blank}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
