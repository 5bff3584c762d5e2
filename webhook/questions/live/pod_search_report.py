"""Text and JSON output about the live pods that a search found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.decision.stamp import HASH_LENGTH
from webhook.questions.live.pod_search import KINDS, Finding, Found, Kind
from webhook.shortening import count_text, harmless, one_line, shortened
from webhook.text.layout import sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator


_HEAD: Final = ("namespace", "owner", "pods", "finding", "names and reason")
_COUNTS: Final[dict[Kind, str]] = {
    "otherwise": "would be placed otherwise",
    "unplaced": "without a stamp",
    "no-node": "that no node admits",
}


def answer_of(search_result: Found) -> str:
    """Return how many pods need attention, and what is not known, in one sentence."""
    where = (
        f"in {search_result.search.namespace}"
        if search_result.search.namespace
        else "in all namespaces"
    )
    kinds = [kind for kind in KINDS if kind in search_result.search.kinds]
    unknown = [kind for kind in kinds if _is_unknown(search_result, kind)]
    counts = [
        f"{search_result.count(kind):,} {_COUNTS[kind]}" for kind in kinds if kind not in unknown
    ]
    counts += [f"unknown how many {_COUNTS[kind].removeprefix('that ')}" for kind in unknown]
    read = (
        f"{count_text(search_result.read, 'live pod')} {where}, {search_result.of_runs:,} with a "
        "run or a stamp"
    )
    text = f"{read}: {', '.join(counts)}"
    if search_result.unjudged:
        text += f"; {search_result.unjudged:,} cannot be judged"
    return one_line(text)


def lines(search_result: Found) -> Iterator[str]:
    yield from sentence(answer_of(search_result))
    bases = [f"Policy set {search_result.policies.hash[:HASH_LENGTH]}"]
    if "no-node" in search_result.search.kinds and search_result.nodes is not None:
        bases.append(count_text(len(search_result.nodes), "node"))
    yield ", ".join(bases)
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for finding in search_result.findings:
        rows.setdefault(
            (finding.namespace, finding.owner, finding.finding, finding.text), []
        ).append(finding)
    if rows:
        yield ""
        yield from table(
            _HEAD,
            [
                [
                    one_line(first.namespace),
                    one_line(str(first.owner)),
                    str(1 + len(others)),
                    click.style(first.finding, fg="yellow"),
                    one_line(f"{shortened([p.name for p in (first, *others)])}: {first.text}"),
                ]
                for first, *others in rows.values()
            ],
        )


def _is_unknown(search_result: Found, kind: Kind) -> bool:
    if kind == "no-node" and search_result.nodes is None:
        return True
    return kind == "otherwise" and bool(search_result.unjudged) and not search_result.judged


def owner_lines(search_result: Found) -> Iterator[str]:
    """Yield each owner once that a rollout or its own controller restarts: its namespace, and its
    name in the form that kubectl takes."""
    yield from dict.fromkeys(
        one_line(f"{finding.namespace} {finding.owner}")
        for finding in search_result.findings
        if not finding.kept
    )


def document(search_result: Found) -> dict[str, Any]:
    """Return the result as JSON; a count is null if it is unknown."""
    return {
        "answer": answer_of(search_result),
        "namespace": search_result.search.namespace or None,
        "set": search_result.policies.hash,
        "nodes": None if search_result.nodes is None else len(search_result.nodes),
        "read": search_result.read,
        "ofRuns": search_result.of_runs,
        "judged": search_result.judged,
        "unjudged": search_result.unjudged,
        "counts": {
            kind: None if _is_unknown(search_result, kind) else search_result.count(kind)
            for kind in KINDS
            if kind in search_result.search.kinds
        },
        "pods": search_result.findings,
        "unknown": [harmless(text) for text in search_result.unknown],
        "notes": [harmless(note) for note in search_result.notes],
    }
