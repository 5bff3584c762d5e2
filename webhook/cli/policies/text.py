"""What is told of policies, as text for people."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.layout import shortened, table
from webhook.cli.policies import summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.cli.policies.pods import PodsOf
    from webhook.cli.policies.policies_in_force import PoliciesInForce, Row

# Live pods are those that are there now; decided ones were counted as they came.
_HEAD: Final = [
    *("PRIORITY", "POLICY", "ENFORCED", "LIVE PODS", "WORKLOADS", "PODS DECIDED", "LAST", "FOR")
]


def listed(gathered: PoliciesInForce) -> Iterator[str]:
    """All policies, in their order."""
    found = summary.rows(gathered)
    yield f"{_set(gathered)}; {_served(gathered)}"
    yield ""
    if not found:
        yield "There is no policy. Where the webhook serves files, name them: --policies PATH"
        return
    yield from _table(found)
    for row in found:
        if row.accepted:
            yield ""
            yield click.style(f"{row.name} is not accepted", fg="red") + f": {row.accepted}"


def never(gathered: PoliciesInForce) -> Iterator[str]:
    """The policies that nothing ever matched."""
    every = summary.rows(gathered)
    found = [row for row in every if row.never]
    known = summary.since(every)
    told = f"since {known}" if known else "but what was before is not known"
    if not found:
        yield f"{_counted(len(every))}: each matched something, {told}"
        return
    yield f"{len(found)} of {_counted(len(every))} matched nothing that is known, {told}:"
    yield ""
    yield from _table(found)


def pods(found: PodsOf) -> Iterator[str]:
    """The pods and workloads of one policy."""
    yield (
        click.style(f"policy {found.name}", bold=True)
        + f": live pods in which it took part: {len(found.both) + len(found.no_more)}; in which "
        + f"it would today: {len(found.both) + len(found.would)}; workloads: {len(found.templates)}"
    )
    rows = [
        *_by_namespace("touches", [(pod.namespace, pod.name, "") for pod in found.both]),
        *_by_namespace(
            "no more",
            [(pod.namespace, pod.name, pod.failed[found.name]) for pod in found.no_more],
        ),
        *_by_namespace("would", [(pod.namespace, pod.name, "") for pod in found.would]),
        *_by_namespace(
            "excepted",
            [(pod.namespace, pod.name, f"by {pod.excepted[found.name]}") for pod in found.excepted],
        ),
        *_by_namespace("workload", [(one.namespace, one.title, "") for one in found.templates]),
    ]
    yield from table(rows, 2)
    if found.would:
        yield ""
        yield "would: it took no part when they were created; fairlead explain pod NAME says why"
    if found.audited:
        yield ""
        yield "under Audit, all or part of it: there it changes nothing, and fairlead audit sums up"


def replicas(gathered: PoliciesInForce) -> Iterator[str]:
    """Which set each replica serves, and whether that is one."""
    found = summary.skew(gathered)
    if found is None or gathered.served is None:
        yield "nobody can say what the replicas of the webhook serve"
        return
    rows = [["REPLICA", "SET"], *([each.replica, each.hash] for each in gathered.served)]
    if gathered.compare:
        rows.append([f"({gathered.source})", _hash(gathered)])
    yield from table(rows, 0)
    yield ""
    if found.same:
        which = f", that of {gathered.source}" if found.expected else ""
        count = len(found.hashes)
        word = "the one replica serves" if count == 1 else f"all {count} replicas serve"
        yield click.style(f"{word} the same set{which}", fg="green")
        return
    sets = len(set(found.hashes))
    text = "1 set is served" if sets == 1 else f"{sets or 'no'} sets are served"
    if found.expected:
        text += f", and {gathered.source} has {found.expected} now"
    yield click.style(text, fg="red") + "; a write takes a moment: ask again, then fairlead doctor"


def wrong(gathered: PoliciesInForce) -> Iterator[str]:
    """Why there is no set."""
    yield click.style(f"{gathered.source}: the policies are no set", fg="red") + (
        "; the webhook goes on with the last good one:"
    )
    yield from (f"  {each}" for each in gathered.wrong)


def _table(found: Sequence[Row]) -> Iterator[str]:
    rows = [_HEAD]
    for row in found:
        count = row.counted
        rows.append(
            [
                str(row.priority),
                row.name,
                row.enforced,
                str(row.matching),
                str(row.templates),
                str(count.decided) if count else "?",
                count.last_match or "never" if count else "?",
                row.match,
            ]
        )
    yield from table(rows, 0)


def _set(gathered: PoliciesInForce) -> str:
    policies = gathered.policies
    if policies is None:
        return f"{gathered.source}: no set"
    classes = len(policies.classes)
    kinds = "1 class" if classes == 1 else f"{classes} classes"
    return (
        f"set {_hash(gathered)} of {gathered.source}: {_counted(len(policies.policies))}, {kinds}"
    )


def _served(gathered: PoliciesInForce) -> str:
    found = summary.skew(gathered)
    if found is None:
        return "what the replicas serve is not known"
    count = len(found.hashes)
    replicas_ = "1 replica" if count == 1 else f"{count} replicas"
    if found.same:
        return f"{replicas_} of the webhook serve{'s' if count == 1 else ''} it"
    another = "which serves another" if count == 1 else "not all of which serve it"
    told = f"{replicas_} of the webhook, {another}: fairlead policies --replicas"
    return click.style(told, fg="red")


def _hash(gathered: PoliciesInForce) -> str:
    return gathered.policies.hash[:HASH_LENGTH] if gathered.policies else "none"


def _counted(count: int) -> str:
    return "1 policy" if count == 1 else f"{count} policies"


def _by_namespace(word: str, found: Iterable[tuple[str, str, str]]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for namespace, name, why in found:
        groups[namespace, why].append(name)
    for (namespace, why), names in sorted(groups.items()):
        said = f": {why}" if why else ""
        yield [word, str(len(names)), namespace, shortened(sorted(names), 5) + said]
