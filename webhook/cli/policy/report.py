"""Text and JSON output of `fairlead policy list`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.decision.stamp import HASH_LENGTH
from webhook.questions.policies.policies_in_force import (
    PodsOf,
    PoliciesInForce,
    Row,
    is_audited,
    known_since,
    policy_rows,
)
from webhook.shortening import count_text, shortened
from webhook.text.documents import as_finding
from webhook.text.layout import table
from webhook.times import format_age

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

# Live pods are those that are there now; decided ones were counted as they came.
_COLUMNS: Final[dict[str, Callable[[Row], object]]] = {
    "priority": lambda row: row.priority,
    "policy": lambda row: row.name,
    "enforced": lambda row: row.enforced,
    "live pods": lambda row: row.pods_matching,
    "workloads": lambda row: row.templates_matching,
    "pods decided": lambda row: "?" if row.decided is None else row.decided,
    "last match": lambda row: "?" if row.decided is None else row.last_match or "never",
    "for": lambda row: row.match,
}


def listed(gathered: PoliciesInForce, now: datetime) -> Iterator[str]:
    rows = policy_rows(gathered)
    policies = gathered.policies
    if policies:
        kinds = (
            count_text(len(policies.policies), "policy"),
            count_text(len(policies.classes), "class"),
        )
        yield f"set {_hash(gathered)} of {gathered.source}: {', '.join(kinds)}; {_served(gathered)}"
        yield ""
    if not rows:
        yield (
            "There is no policy. If the webhook serves policies from files, name them: "
            "--policies PATH"
        )
        return
    yield from _table(rows, now)
    for row in rows:
        if row.reason:
            yield ""
            yield click.style(f"{row.name} is not accepted", fg="red") + f": {row.reason}"


def never(gathered: PoliciesInForce, now: datetime) -> Iterator[str]:
    every = policy_rows(gathered)
    rows = [row for row in every if row.never]
    since = known_since(every)
    text = f"since {since}" if since else "but earlier matches are unknown"
    if not rows:
        yield f"{count_text(len(every), 'policy')}: each matched something, {text}"
        return
    yield f"{len(rows)} of {count_text(len(every), 'policy')} never matched a known pod, {text}:"
    yield ""
    yield from _table(rows, now)


def pods(gathered: PoliciesInForce, policy_pods: PodsOf) -> Iterator[str]:
    matching = len(policy_pods.applied)
    yield (
        click.style(f"policy {policy_pods.policy}", bold=True)
        + f": applied to live pods: {matching + len(policy_pods.no_more)}; "
        + f"would apply today: {matching + len(policy_pods.would)}; "
        + f"workloads: {len(policy_pods.workloads)}"
    )
    rows = []
    for word, pods in (
        ("applied", policy_pods.applied),
        ("no more", policy_pods.no_more),
        ("would", policy_pods.would),
        ("exempt", policy_pods.exempt),
        ("workload", [(*workload, None) for workload in policy_pods.workloads]),
    ):
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for namespace, name, why in pods:
            reason = f": {'by ' if word == 'exempt' else ''}{why}" if why else ""
            groups[namespace, reason].append(name)
        rows += [
            [word, str(len(names)), namespace, shortened(sorted(names), 5) + reason]
            for (namespace, reason), names in sorted(groups.items())
        ]
    yield from table(("state", "count", "namespace", "names"), rows)
    if policy_pods.would:
        yield ""
        yield "would: it was not applied when they were created; fairlead explain pod NAME says why"
    if is_audited(gathered, policy_pods.policy):
        yield ""
        yield (
            "under Audit, all or part of it: there it changes nothing, and fairlead policy audit "
            "sums up"
        )


def replicas(gathered: PoliciesInForce) -> Iterator[str]:
    if gathered.served is None:
        yield "it is unknown what the replicas of the webhook serve"
        return
    rows = [[served_set.replica, served_set.hash] for served_set in gathered.served]
    if gathered.compare:
        rows.append([f"({gathered.source})", _hash(gathered)])
    yield from table(("replica", "set"), rows)
    yield ""
    if gathered.same_set:
        which = f", that of {gathered.source}" if gathered.expected else ""
        count = len(gathered.served)
        word = "the one replica serves" if count == 1 else f"all {count} replicas serve"
        yield click.style(f"{word} the same set{which}", fg="green")
        return
    sets = len({served_set.hash for served_set in gathered.served})
    text = "1 set is served" if sets == 1 else f"{sets or 'no'} sets are served"
    if gathered.expected:
        text += f", and {gathered.source} has {gathered.expected} now"
    yield (
        click.style(text, fg="red")
        + "; a write takes a few seconds to reach all replicas: try again, then run fairlead doctor"
    )


def wrong(gathered: PoliciesInForce) -> Iterator[str]:
    yield click.style(f"{gathered.source}: the policies do not compile", fg="red") + (
        "; the webhook keeps the last good set:"
    )
    yield from (f"  {problem}" for problem in gathered.wrong)


def _table(listed_rows: Sequence[Row], now: datetime) -> Iterator[str]:
    aged = [row._replace(last_match=format_age(row.last_match or "", now)) for row in listed_rows]
    rows = [[str(column(row)) for column in _COLUMNS.values()] for row in aged]
    yield from table([*_COLUMNS], rows)


def _served(gathered: PoliciesInForce) -> str:
    if gathered.served is None:
        return "what the replicas serve is not known"
    count = len(gathered.served)
    replicas_ = count_text(count, "replica")
    if gathered.same_set:
        return f"{replicas_} of the webhook serve{'s' if count == 1 else ''} it"
    another = "which serves another set" if count == 1 else "some of which serve another set"
    text = f"{replicas_} of the webhook, {another}: fairlead policy replicas"
    return click.style(text, fg="red")


def _hash(gathered: PoliciesInForce) -> str:
    return gathered.policies.hash[:HASH_LENGTH] if gathered.policies else "none"


def document(gathered: PoliciesInForce, rows: Sequence[Row]) -> dict[str, Any]:
    return {**served_document(gathered), "since": known_since(rows), "policies": rows}


def served_document(gathered: PoliciesInForce) -> dict[str, Any]:
    return {
        "source": gathered.source,
        "set": gathered.policies.hash if gathered.policies else None,
        "findings": [*map(as_finding, gathered.wrong)],
        "replicas": gathered.served,
        "sameSet": gathered.same_set,
    }
