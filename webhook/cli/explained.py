"""Why pods get what they get: each policy with its answer, and what audits and nodes say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.admission.engine import subject_of
from webhook.cli import excepted
from webhook.cli.live.value_text import setting_text
from webhook.placement import nodes as nodes_of
from webhook.placement import on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.admission.decision import Decision
    from webhook.cli.decisions import Replicas
    from webhook.placement.nodes import Node, Survey
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import Policy, PolicySet

# applies: it took part; audit: it would have; set aside: it matches, and takes no part all the
# same; no: it does not match.
Answer: TypeAlias = Literal["applies", "audit", "set aside", "no"]
# Reasons that say no more than the outcome.
_BARE: Final = ("set", "added", "appended")
_ORDER: tuple[Answer, ...] = ("applies", "audit", "set aside", "no")


class PolicyAnswer(NamedTuple):
    """What one policy has to do with the pods; `why` is the condition that fails, or a reason.

    `ended` tells of exceptions that would have kept it from taking part, had they not ended.
    """

    name: str
    priority: int
    answer: Answer
    why: str
    ended: str = ""


def answers(replicas: Replicas, policies: PolicySet) -> list[PolicyAnswer]:
    """The answer of every policy, in their order, those that match first.

    Empty for pods of no run, and for those that are not sent: no policy is asked about them.
    """
    decision, arrival = replicas.decision, replicas.arrival
    if decision.identity is None or decision.result == "not-sent":
        return []
    subject = subject_of(arrival, pods.read(arrival.pod), decision.identity, policies)
    audited = decision.audited.policies if decision.audited else ()
    found = []
    for at, policy in enumerate(policies.policies):
        answer: Answer = "no"
        if policy.name in decision.policies:
            answer, why = "applies", policy.description
            if fields := decision.unfulfilled.get(policy.name):
                why = f"without effect: {', '.join(fields)}"
        elif policy.name in audited:
            answer, why = "audit", _audited(policy, arrival.namespace)
        elif failed := policy.failed(subject):
            why = failed
        else:
            answer, why = "set aside", _aside(replicas, policies, at)
        said = "; ".join(excepted.reasons(decision, policy.name, arrival.now))
        if policy.name in decision.set_aside.policies:
            answer, why, said = "set aside", said, ""
        found.append(PolicyAnswer(policy.name, policy.priority, answer, why, said))
    return sorted(found, key=lambda each: _ORDER.index(each.answer))


def _audited(policy: Policy, namespace: str) -> str:
    if not policy.enforced:
        return policy.description
    return f"it is not rolled out to the namespace {namespace} yet"


def _aside(replicas: Replicas, policies: PolicySet, at: int) -> str:
    if replicas.decision.result == "left-alone":
        return "it matches, but the pod is left alone"
    if at in policies.systems and not replicas.decision.reason:
        return f"it matches, but it is for nodes that run {policies.systems[at][1]}"
    return "it matches, but the pod is rejected before it would count"


def audit_lines(replicas: Replicas, policies: PolicySet) -> Iterator[tuple[str, str, str]]:
    """What the policies under Audit would do beyond what is done: word, policy, field and value.

    Of a policy that is enforced, what would become otherwise of its settings.
    """
    audited = replicas.decision.audited
    if audited is None:
        return
    if not audited.differs:
        yield "same", ", ".join(audited.policies), "nothing would change"
    elif audited.rejections:
        yield from (("reject", "", rejection) for rejection in audited.rejections)
    else:
        for entry in audit_entries(replicas.decision):
            yield entry.outcome, credited_to(entry), f"{entry.field}: {meant(entry, policies)}"


def audit_entries(decision: Decision) -> list[Entry]:
    """What would become of settings, were the policies under Audit enforced, and does not now."""
    trace = decision.audited.trace if decision.audited else ()
    return [entry for entry in trace if entry not in decision.trace]


def credited_to(entry: Entry) -> str:
    """Whose setting a line of the trace is about."""
    return f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself"


def meant(entry: Entry, policies: PolicySet) -> str:
    """The reason, which often has the value; if not, the value and what the reason says of it."""
    if entry.outcome != "set":
        return entry.reason
    values = [
        text
        for policy in policies.policies
        if policy.name == entry.policy
        for setting in policy.settings
        if (setting.part, setting.field) == (entry.part, entry.field)
        if (text := setting_text(setting))
    ]
    if not values:
        return entry.reason
    said = "" if entry.reason in _BARE else f" ({entry.reason})"
    return f"{'; '.join(values)}{said}"


class Surveys(NamedTuple):
    """The nodes that admit the pods as they came, and with the patch; None if there is none.

    `on_demand`: if none admits them in the end, the autoscaled classes that could make one.
    """

    before: Survey
    after: Survey | None
    on_demand: tuple[str, ...] = ()

    @property
    def last(self) -> Survey:
        """The nodes that admit the pods as they would be."""
        return self.after or self.before


def surveys(replicas: Replicas, nodes: Sequence[Node], policies: PolicySet) -> Surveys:
    """Where the pods may run."""
    before = nodes_of.survey(pods.read(replicas.arrival.pod), nodes)
    decision = replicas.decision
    if decision.placement is None or not decision.allowed:
        return Surveys(before, None)
    after = nodes_of.survey(decision.placement, nodes)
    if after.admitted:
        return Surveys(before, after)
    made = on_demand.makers(decision.placement, policies.classes.values(), NodeGroups(nodes))
    return Surveys(before, after, tuple(made))
