"""Text and JSON output about the live pods that a search found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.decision.stamp import HASH_LENGTH
from webhook.questions.live.pod_search import KINDS, Finding, Found, Kind
from webhook.shortening import count_text, harmless, one_line, shortened
from webhook.text.layout import table

if TYPE_CHECKING:
    from collections.abc import Iterator


_HEADS: Final = ("NAMESPACE", "OWNER", "PODS", "FINDING", "NAMES AND REASON")
_COUNTS: Final = {
    "otherwise": "would be placed otherwise",
    "unplaced": "without a stamp",
    "no-node": "that no node admits",
}


def lines(found: Found) -> Iterator[str]:
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for each in found.findings:
        rows.setdefault((each.namespace, each.owner, each.finding, each.text), []).append(each)
    if rows:
        yield from table(
            [
                [click.style(head, bold=True) for head in _HEADS],
                *(
                    [
                        one_line(first.namespace),
                        one_line(str(first.owner)),
                        str(1 + len(others)),
                        click.style(first.finding, fg="yellow"),
                        one_line(f"{shortened([p.name for p in (first, *others)])}: {first.text}"),
                    ]
                    for first, *others in rows.values()
                ),
            ],
            0,
        )
        yield ""
    for kind in KINDS:
        if kind in found.search.kinds and not _is_unknown(found, kind):
            count = count_text(found.count(kind), "pod")
            basis = f" (of {len(found.nodes or ())} nodes)" if kind == "no-node" else ""
            if kind == "otherwise":
                basis = f" (policy set {found.policies.hash[:HASH_LENGTH]})"
                if found.unjudged:
                    count = f"{found.count(kind):,} of {found.judged:,} judged pods"
            yield f"{count} {_COUNTS[kind]}{basis}"
    where = f"in {found.search.namespace}" if found.search.namespace else "in all namespaces"
    read = count_text(found.read, "live pod")
    yield f"Read {read} {where}, {found.of_runs:,} of them with a run or a stamp"
    if found.unjudged:
        unjudged = count_text(found.unjudged, "pod")
        yield f"{unjudged} of these cannot be judged; stderr names the reasons"


def _is_unknown(found: Found, kind: Kind) -> bool:
    if kind == "no-node" and found.nodes is None:
        return True
    return kind == "otherwise" and bool(found.unjudged) and not found.judged


def owner_lines(found: Found) -> Iterator[str]:
    """Yield each owner once that a rollout or its own controller restarts: its namespace, and its
    name in the form that kubectl takes."""
    yield from dict.fromkeys(
        one_line(f"{each.namespace} {each.owner}") for each in found.findings if not each.kept
    )


def document(found: Found) -> dict[str, Any]:
    """Return the result as JSON; a count is null if it is unknown."""
    return {
        "namespace": found.search.namespace or None,
        "set": found.policies.hash,
        "nodes": None if found.nodes is None else len(found.nodes),
        "read": found.read,
        "ofRuns": found.of_runs,
        "judged": found.judged,
        "unjudged": found.unjudged,
        "counts": {
            kind: None if _is_unknown(found, kind) else found.count(kind)
            for kind in KINDS
            if kind in found.search.kinds
        },
        "pods": found.findings,
        "unknown": [harmless(each) for each in found.unknown],
        "notes": [harmless(each) for each in found.notes],
    }
