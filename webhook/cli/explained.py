"""Why pods get what they get: each policy with its answer, and what audits and nodes say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from webhook.admission.engine import subject_of
from webhook.cli import excepted
from webhook.placement import nodes as nodes_of
from webhook.placement import on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.policy.findings import path_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.placement.nodes import Node, Survey
    from webhook.policy.policy_set import Policy, PolicySet

# applies: it took part; audit: it would have; set aside: it matches, and takes no part all the
# same; no: it does not match.
Answer: TypeAlias = Literal["applies", "audit", "set aside", "no"]
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

    Empty for pods of no run: no policy is asked about them.
    """
    decision, arrival = replicas.decision, replicas.arrival
    if decision.identity is None:
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


def audit_lines(replicas: Replicas) -> Iterator[tuple[str, str, str]]:
    """What the policies under Audit would do beyond what is done: word, field, value."""
    audited = replicas.decision.audited
    if audited is None:
        return
    for rejection in audited.rejections:
        yield "reject", "", rejection
    if audited.differs and not audited.rejections:
        for operation in audited.patch:
            if operation not in replicas.decision.patch:
                word = "remove" if operation["op"] == "remove" else "set"
                yield word, _field(operation["path"]), _short(operation.get("value"))


def _field(pointer: str) -> str:
    tokens = pointer.lstrip("/").split("/")
    return path_text(tuple(t.replace("~1", "/").replace("~0", "~") for t in tokens if t != "-"))


def _short(value: Any) -> str:
    """A scalar as it is, and of anything larger its keys: the whole is a matter for -o json."""
    match value:
        case dict():
            return f"{{{', '.join(map(str, value))}}}"
        case list():
            return "1 entry" if len(value) == 1 else f"{len(value)} entries"
        case None:
            return ""
    return str(value)


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
