"""What is told of policies, as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cli.policies import summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.cli.policies.pods import PodsOf
    from webhook.cli.policies.policies_in_force import LivePod, PoliciesInForce, Row


def document(gathered: PoliciesInForce, rows: Iterable[Row]) -> dict[str, Any]:
    """Policies, and what replicas serve."""
    found = list(rows)
    return {
        **served(gathered),
        "since": summary.since(found) or None,
        "policies": [row.document() for row in found],
    }


def served(gathered: PoliciesInForce) -> dict[str, Any]:
    """What replicas serve."""
    skew = summary.skew(gathered)
    return {
        "source": gathered.source,
        "set": gathered.policies.hash if gathered.policies else None,
        "errors": list(gathered.wrong),
        "replicas": None
        if gathered.served is None
        else [each._asdict() for each in gathered.served],
        "sameSet": skew.same if skew else None,
    }


def pods(found: PodsOf) -> dict[str, Any]:
    """The pods and workloads of one policy."""
    return {
        "policy": found.name,
        "touches": [_pod(each, found.name) for each in found.both],
        "noMore": [_pod(each, found.name) for each in found.no_more],
        "would": [_pod(each, found.name) for each in found.would],
        "excepted": [_pod(each, found.name) for each in found.excepted],
        "workloads": [
            {"namespace": each.namespace, "object": each.title} for each in found.templates
        ],
    }


def _pod(pod: LivePod, name: str) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "why": pod.failed.get(name) or pod.excepted.get(name),
    }
