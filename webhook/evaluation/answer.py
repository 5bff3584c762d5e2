"""The first sentence of an answer about pods: what happens to them, where, and what is not known.

Every face prints it first. It is the field `answer` of a PodsResult.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from webhook.evaluation.pod_faults import effective
from webhook.policy.refused_pods import classes_of
from webhook.shortening import count_text, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.surveys import Surveys

# What becomes of pods, in a word, the worst first; of several pods as a text after their number.
WORDS: Final = {
    "refused": "refused by the API server",
    "rejected": "rejected",
    "no node": "without a node",
    "unknown": "unknown",
    "not-sent": "not sent to the webhook",
    "not-a-run": "not part of a run",
    "left-alone": "left alone",
    "unchanged": "unchanged",
    "placed": "placed",
}
NOT_CHECKED: Final = "nodes not checked"


def answer_of(replicas: Replicas) -> str:
    """Return what happens to pods with equal decisions, and on how many nodes they can run.

    As in `placed by workers-on-spot; can run on 2 of 3 nodes, 1 before`.
    """
    result = outcome_text(replicas)
    if replicas.admitted:
        nodes = replicas.evaluation.nodes
        if nodes and nodes.none_left:
            result = f"{nodes_of(nodes)}; {result}"
        else:
            more = _at_once(replicas, replicas.count) if replicas.shows_room else ()
            result = "; ".join((result, nodes_of(nodes), *more))
    return one_line(hedged(result, doubts(replicas)))


def answer_of_all(groups: Sequence[Replicas]) -> str:
    """Return the answer about all pods of one object: how many become what, the worst first."""
    if len(groups) == 1:
        return answer_of(groups[0])
    counts = Counter[str]()
    for group in groups:
        counts[word_of(group)] += group.count
    total = sum(counts.values())
    result = count_text(total, "pod")
    if len(counts) == 1:
        result += f" {WORDS[word_of(groups[0])]}"
    else:
        texts = [f"{counts[word]:,} {text}" for word, text in WORDS.items() if counts[word]]
        result += f": {', '.join(texts)}"
    more = [*_at_once(groups[0], total)] if groups[0].evaluation.nodes else [NOT_CHECKED]
    return "; ".join((result, *more))


def word_of(replicas: Replicas) -> str:
    """Return what happens to the pods in a word: the webhook's result, or a worse one."""
    if doubts(replicas):
        return "unknown"
    if replicas.refusals:
        return "refused"
    nodes = replicas.evaluation.nodes
    if nodes and nodes.none_left and replicas.decision.allowed:
        return "no node"
    return replicas.decision.result


def hedged(text: str, unknown: Sequence[str]) -> str:
    """Return the text as what is known, if something that decides is unknown."""
    return f"unknown, because {' and '.join(unknown)}; as far as known: {text}" if unknown else text


def doubts(replicas: Replicas) -> list[str]:
    """Return why it is unknown what happens to the pods; empty if it is known."""
    return list(_doubts(replicas))


def _doubts(replicas: Replicas) -> Iterator[str]:
    evaluation = replicas.evaluation
    world, arrival = evaluation.world, replicas.arrival
    yield from (unknown.short or unknown.reason for unknown in replicas.undecided)
    if arrival.namespace not in world.namespaces and (
        "namespace_selector" in world.policies.tested or replicas.decision.identity is None
    ):
        yield f"the labels of namespace {arrival.namespace} are not read"
    if evaluation.unread_defaults:
        yield "LimitRanges are not read"
    if evaluation.depends_on_node:
        yield "the webhook may reject it for its node, and nodes are not read"
    placement = evaluation.placement
    for _, kind, name in classes_of(placement) if placement else ():
        if world.classes is not None and kind not in world.classes:
            yield f"the {kind} {name} may not exist"
    if evaluation.answer.unknown:
        yield "the API server did not say whether it takes the pod"


def outcome_text(replicas: Replicas) -> str:
    """Return what happens to the pods, with the reason."""
    decision = replicas.decision
    if replicas.refusals:
        return f"the API server refuses it: {'; '.join(replicas.refusals)}"
    reason = decision.reason.removeprefix("fairlead: ")
    match decision.result:
        case "placed":
            return _placed(replicas)
        case "unchanged" if decision.policies:
            return f"unchanged: {_as_requested(replicas)}"
        case "unchanged" if decision.set_aside.by:
            return "unchanged: exceptions set aside every policy that matches"
        case "unchanged" if decision.audited:
            return "unchanged: no enforced policy matches"
        case "unchanged":
            return "unchanged: no policy matches"
        case "left-alone":
            return f"left alone: {reason}"
        case "rejected":
            return f"rejected: {reason}"
        case "not-sent":
            return f"not sent to the webhook, so no policy applies: {reason}"
    return "not part of a run, so no policy applies"


def nodes_of(surveys: Surveys | None) -> str:
    """Return on how many nodes pods can run, how many it were without policies, and what is not
    known of that.

    As in `can run on at most 2 of 3 nodes (not judged: volumes), 1 before`.
    """
    if surveys is None:
        return NOT_CHECKED
    last = surveys.last
    count = f"{len(last.admitted)} of {last.total} nodes"
    if surveys.unread.what:
        return f"nodes unknown, as {surveys.unread.state}; without it {count}"
    if surveys.on_demand:
        text = f"class {', '.join(surveys.on_demand)} creates its nodes on demand, {count} now"
    elif not last.admitted:
        text = f"no node admits it: {count}"
    else:
        text = f"can run on {'at most ' if surveys.not_judged else ''}{count}"
        if surveys.not_judged:
            text += f" (not judged: {', '.join(surveys.not_judged)})"
    if surveys.unread_before.what:
        text += f", before unknown, as {surveys.unread_before.state}"
    elif surveys.after and (surveys.after.admitted != surveys.before.admitted or surveys.differs):
        text += f", {len(surveys.before.admitted)} before"
    if surveys.evicting:
        text += f"; {len(surveys.evicting)} of them evict it"
    return text


def _at_once(replicas: Replicas, count: int) -> Iterator[str]:
    """Yield how many pods of the object can run at one time, or that it is not judged. A DaemonSet
    has no number of pods."""
    if replicas.room:
        yield replicas.room.text
    elif replicas.evaluation.nodes and count > 1 and replicas.template.count is not None:
        yield f"whether all {count:,} run at one time is not judged"


def _placed(replicas: Replicas) -> str:
    """Return by which policies; `(not in full)` if a setting of one has no effect.

    Then which others match, of which nothing takes effect.
    """
    decision = replicas.decision
    setters = {entry.policy for entry in effective(decision)}
    placing = [
        f"{name} (not in full)" if name in decision.unfulfilled else name
        for name in decision.policies
        if name in setters
    ]
    others = [name for name in decision.policies if name not in setters]
    return "; ".join(
        (f"placed by {', '.join(placing) or 'its own request'}", *_without_effect(replicas, others))
    )


def _as_requested(replicas: Replicas) -> str:
    decision = replicas.decision
    yielding = _yielding(replicas)
    whole = [
        name
        for name in decision.policies
        if name not in decision.unfulfilled and name not in yielding
    ]
    lines = [f"the pod already has what {', '.join(whole)} sets"] if whole else []
    return "; ".join((*lines, *_without_effect(replicas, decision.policies)))


def _without_effect(replicas: Replicas, policies: Collection[str]) -> Iterator[str]:
    """Yield which settings of these policies have no effect, and which yield to the pod's own."""
    for name, fields in replicas.decision.unfulfilled.items():
        if name in policies:
            have = "has" if len(fields) == 1 else "have"
            yield f"{', '.join(fields)} of {name} {have} no effect"
    for name, kept in _yielding(replicas).items():
        if name in policies:
            yields = "yields" if len(kept) == 1 else "yield"
            yield f"{', '.join(kept)} of {name} {yields} to what the pod has"


def _yielding(replicas: Replicas) -> dict[str, list[str]]:
    """Return by policy the fields in which the pod keeps a value of its own."""
    policies, final = replicas.evaluation.world.policies, replicas.evaluation.placement
    fields_by_policy: dict[str, list[str]] = {}
    if final is None:
        return fields_by_policy
    held = {
        (setting.field, policy.name, setting.part)
        for policy in policies.policies
        if policy.name in replicas.decision.policies
        for setting in policy.settings
        if setting.holds_in(final) or not (setting.is_default or setting.row.overrides == "keep")
    }
    for entry in replicas.decision.trace:
        if entry.policy and entry.outcome == "kept" and entry[:3] not in held:
            fields_by_policy.setdefault(entry.policy, []).append(entry.field)
    return fields_by_policy
