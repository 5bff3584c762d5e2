"""Text and JSON output about the live pods that a search found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.layout import table
from webhook.cli.live.pod_search import KINDS
from webhook.shortening import harmless, one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.cli.live.pod_search import Finding, Found, Kind

_HEADS: Final = ("NAMESPACE", "OWNER", "PODS", "FINDING", "NAMES AND REASON")
_COUNTS: Final = {
    "otherwise": "would be placed otherwise",
    "unplaced": "without a stamp",
    "no-node": "that no node admits",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """Pods of one owner with the same finding and reason."""

    first: Finding
    names: list[str] = field(default_factory=list)


def lines(found: Found) -> Iterator[str]:
    """Yield a row for each owner and reason, then the counts."""
    rows = _rows(found)
    if rows:
        yield from table(
            [
                [click.style(head, bold=True) for head in _HEADS],
                *(
                    [
                        one_line(row.first.namespace),
                        one_line(str(row.first.owner)),
                        str(len(row.names)),
                        click.style(row.first.kind, fg="yellow"),
                        one_line(f"{shortened(row.names)}: {row.first.text}"),
                    ]
                    for row in rows
                ),
            ],
            0,
        )
        yield ""
    for kind in KINDS:
        if kind in found.search.kinds and not _is_unknown(found, kind):
            yield f"{_count(found, kind)} {_COUNTS[kind]}{_basis(found, kind)}"
    where = f"in {found.search.namespace}" if found.search.namespace else "in all namespaces"
    live = "1 live pod" if found.read == 1 else f"{found.read:,} live pods"
    yield f"Read {live} {where}, {found.of_runs:,} of them with a run or a stamp"
    if found.unjudged:
        yield f"{_pods(found.unjudged)} of these cannot be judged; stderr names the reasons"


def _count(found: Found, kind: Kind) -> str:
    count = found.count(kind)
    if kind == "otherwise" and found.unjudged:
        return f"{count:,} of {found.judged:,} judged pods"
    return _pods(count)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"


def _is_unknown(found: Found, kind: Kind) -> bool:
    """Return whether no pod could be judged for findings of this kind."""
    if kind == "no-node" and found.nodes is None:
        return True
    return kind == "otherwise" and bool(found.unjudged) and not found.judged


def _basis(found: Found, kind: str) -> str:
    if kind == "otherwise":
        return f" (policy set {found.policies.hash[:HASH_LENGTH]})"
    return f" (of {len(found.nodes or ())} nodes)" if kind == "no-node" else ""


def owner_lines(found: Found) -> Iterator[str]:
    """Yield each owner once: its namespace, and its name in the form that kubectl takes."""
    yield from dict.fromkeys(one_line(f"{each.namespace} {each.owner}") for each in found.findings)


def _rows(found: Found) -> list[_Row]:
    rows: dict[tuple[object, ...], _Row] = {}
    for each in found.findings:
        key = (each.namespace, each.owner, each.kind, each.text)
        rows.setdefault(key, _Row(each)).names.append(each.name)
    return list(rows.values())


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
        "pods": [_document(each) for each in found.findings],
        "unknown": [harmless(each) for each in found.unknown],
        "notes": [harmless(each) for each in found.notes],
    }


def _document(each: Finding) -> dict[str, Any]:
    owner = each.owner
    return {
        "namespace": each.namespace,
        "name": each.name,
        "finding": each.kind,
        "reason": None if each.differences else harmless(each.text),
        "owner": {"group": owner.group, "kind": owner.kind, "name": owner.name},
        "stampSet": each.stamp_set or None,
        "author": each.author,
        "differences": [difference._asdict() for difference in each.differences],
        "unsure": [{"policy": policy, "field": name} for policy, name in each.unsure],
    }
