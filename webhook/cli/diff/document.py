"""Differences as JSON for programs: all of them, with every pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.comparison.difference import KINDS
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections import Counter

    from webhook.cli.diff.words import Outcome
    from webhook.comparison.difference import Kind, Side
    from webhook.comparison.report import Change, Some
    from webhook.policy.policy_set import PolicySet


def document(outcome: Outcome) -> dict[str, Any]:
    """The whole answer."""
    report = outcome.report
    return {
        "old": _set(outcome.old, outcome.old_set),
        "new": _set(outcome.new, outcome.new_set),
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
        "changes": [_change(change) for change in report.changes],
    }


def _set(source: str, policies: PolicySet) -> dict[str, Any]:
    return {"source": source, "set": policies.hash, "policies": len(policies.policies)}


def _counts(counts: Counter[Kind]) -> dict[str, int]:
    return {kind: counts[kind] for kind in KINDS}


def _change(change: Change) -> dict[str, Any]:
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
