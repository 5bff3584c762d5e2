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


def answer_of(found: Found) -> str:
    """Return how many pods need attention, and what is not known, in one sentence."""
    where = f"in {found.search.namespace}" if found.search.namespace else "in all namespaces"
    kinds = [kind for kind in KINDS if kind in found.search.kinds]
    unknown = [kind for kind in kinds if _is_unknown(found, kind)]
    counts = [f"{found.count(kind):,} {_COUNTS[kind]}" for kind in kinds if kind not in unknown]
    counts += [f"unknown how many {_COUNTS[kind].removeprefix('that ')}" for kind in unknown]
    read = f"{count_text(found.read, 'live pod')} {where}, {found.of_runs:,} with a run or a stamp"
    text = f"{read}: {', '.join(counts)}"
    if found.unjudged:
        text += f"; {found.unjudged:,} cannot be judged"
    return one_line(text)


def lines(found: Found) -> Iterator[str]:
    yield from sentence(answer_of(found))
    bases = [f"Policy set {found.policies.hash[:HASH_LENGTH]}"]
    if "no-node" in found.search.kinds and found.nodes is not None:
        bases.append(count_text(len(found.nodes), "node"))
    yield ", ".join(bases)
    rows: dict[tuple[object, ...], list[Finding]] = {}
    for each in found.findings:
        rows.setdefault((each.namespace, each.owner, each.finding, each.text), []).append(each)
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
        "answer": answer_of(found),
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
