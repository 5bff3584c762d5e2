"""The result of an evaluation for programs and for people: what happens to pods, and why.

`schemas/pods.json` is the schema of PodsResult. Text is made from it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from webhook.decision.arrival import keeps_placement
from webhook.decision.audit import report
from webhook.decision.decision import Outcome as AuditOutcome  # noqa: TC001  pydantic reads it
from webhook.decision.decision import Result as WebhookResult  # noqa: TC001  pydantic reads it
from webhook.decision.engine import subject_of
from webhook.evaluation.answer import answer_of
from webhook.placement import pod as pods
from webhook.placement.quantity import format_quantity
from webhook.placement.room import ONLY_ONE
from webhook.placement.trace import Outcome  # noqa: TC001  pydantic reads it
from webhook.policy.json_schema import DIALECT
from webhook.shortening import harmless
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.decision.arrival import Arrival
    from webhook.decision.decision import Decision
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.room import ObjectRoom
    from webhook.placement.nodes import Survey
    from webhook.policy.exceptions import PolicyException
    from webhook.policy.policy_set import Policy, PolicySet
    from webhook.policy.subject import Subject

# applies: it was applied; audit: it would be applied; set aside: it matches, but is not applied;
# no: it does not match.
Answer: TypeAlias = Literal["applies", "audit", "set aside", "no"]
_ORDER: Final[tuple[Answer, ...]] = ("applies", "audit", "set aside", "no")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class IdentityResult(_Model):
    """The pod's place in its run."""

    run: str = Field(description="The run's name; empty if only the namespace marks the pod.")
    kind: str = Field(description="The run's kind, such as job or notebook.")
    framework: str | None = Field(description="Null if the pod's marks name none.")
    role: str | None = Field(description="The pod's role in the framework; null without one.")
    replica_index: int | None = Field(
        alias="replica_index", description="The pod's index in its role; null without one."
    )
    replicas: int | None = Field(
        description="How many replicas the role has, if the pod says so; else null."
    )
    source: str = Field(description="The source that marks the pod as one of a run.")
    coordinator: bool = Field(description="True if the pod leads the run.")


class PolicyAnswer(_Model):
    """What one policy does to the pods."""

    name: str = Field(description="The policy.")
    priority: int = Field(description="Its priority.")
    answer: Answer = Field(
        description="`applies`: it was applied. `audit`: it would be applied. `set aside`: it "
        "matches, and is not applied. `no`: it does not match."
    )
    why: str = Field(description="The condition that fails, or a reason.")
    ended: str = Field(
        "", description="Exceptions that would exempt the pods if they had not ended."
    )


def answers(evaluation: Evaluation) -> list[PolicyAnswer]:
    """Return the answer of every policy, in their order, those that match first.

    Of teams' policies, only those of the pod's namespace. Empty for pods without a run, and for
    pods that are not sent to the webhook.
    """
    decision, arrival, policies = evaluation.decision, evaluation.arrival, evaluation.world.policies
    if decision.identity is None or decision.result == "not-sent":
        return []
    subject = subject_of(arrival, pods.parse_pod(arrival.pod), decision.identity, policies)
    every = [
        _answer(at, decision, arrival, subject, policies)
        for at, policy in enumerate(policies.policies)
        if policy.team in ("", arrival.namespace)
    ]
    return sorted(every, key=lambda answer: _ORDER.index(answer.answer))


def _answer(
    at: int, decision: Decision, arrival: Arrival, subject: Subject, policies: PolicySet
) -> PolicyAnswer:
    """Return the answer of the policy at this position, for a decision on a pod of a run."""
    policy = policies.policies[at]
    answer: Answer = "no"
    if policy.name in decision.policies:
        answer, why = "applies", policy.description
        if fields := decision.unfulfilled.get(policy.name):
            why = f"without effect: {', '.join(fields)}"
    elif decision.audited and policy.name in decision.audited.policies:
        answer, why = "audit", _audited(policy, arrival.namespace)
    elif failed := policy.failed(subject):
        why = failed
    else:
        answer, why = "set aside", _aside(at, decision, arrival, policies)
    remark = "; ".join(exception_reasons(decision, policy.name, arrival.now))
    if policy.name in decision.set_aside.policies:
        answer, why, remark = "set aside", remark, ""
    return PolicyAnswer(
        name=policy.name, priority=policy.priority, answer=answer, why=why, ended=remark
    )


def _audited(policy: Policy, namespace: str) -> str:
    if not policy.enforced:
        return policy.description
    return f"it is not rolled out to the namespace {namespace} yet"


def _aside(at: int, decision: Decision, arrival: Arrival, policies: PolicySet) -> str:
    """Return why a policy that matches is not applied, in the order of the engine's steps."""
    if decision.result == "left-alone":
        return "it matches, but the pod is left alone"
    if not decision.allowed and not decision.trace:
        return "it matches, but the pod is rejected before policies are applied"
    if keeps := keeps_placement(arrival, pods.parse_pod(arrival.pod)):
        return f"it matches, but it requires nothing, and the pod is {keeps}"
    system = policies.systems.get(at)
    nodes = f"nodes that run {system[1]}" if system else "another operating system"
    return f"it matches, but it is for {nodes}"


def exception_reasons(decision: Decision, policy: str, now: datetime | None) -> Iterator[str]:
    """Yield why the policy takes no part, or that it would have taken none; nothing in most
    cases."""
    for exception, policies in decision.set_aside.by:
        if policy in policies:
            yield describe_exception(exception, now)
    for exception, policies in decision.set_aside.ended:
        if policy in policies:
            yield f"exception {exception.name} would have set it aside; it {period(exception, now)}"


def period(exception: PolicyException, now: datetime | None) -> str:
    """Return when it ends or has ended: `until 2026-12-01T18:00:00Z (in 3h)`, `ended 2d ago`."""
    if now is None:
        return f"until {exception.end}"
    left = (exception.until - now).total_seconds()
    if left > 0:
        return f"until {exception.end} (in {format_span(left)})"
    return f"ended {format_span(-left)} ago"


def describe_exception(exception: PolicyException, now: datetime | None) -> str:
    return f"exception {exception.name} {period(exception, now)}: {harmless(exception.reason)}"


class FieldResult(_Model):
    """What became of one setting of a policy, or of the pod's own annotation."""

    field: str = Field(description="The field of the pod, as in nodeSelector[pool].")
    policy: str = Field(description="Empty if the pod's own annotation asks.")
    part: str = Field(description="defaults, overrides or requirements; pod for the annotation.")
    outcome: Outcome = Field(
        description="`set`: changed. `kept`: the pod's value stays. `lost`: an earlier policy "
        "decides. `dropped`: it conflicts. `removed`: taken away. `skipped`: unchanged. "
        "`rejected`: the pod is rejected for it."
    )
    reason: str = Field(description="Why, or the value.")


class AuditResult(_Model):
    """The result if policies under Audit were enforced, too: each alone, and all together."""

    policies: tuple[str, ...] = Field(description="The policies under Audit that match.")
    differs: bool = Field(description="True if the pods would be different.")
    outcomes: dict[str, AuditOutcome] = Field(
        description="What each policy alone would do if it were enforced. `rejects`: by the "
        "webhook, or by the API server after it. `*`: all together, if several match."
    )
    unknown: dict[str, str] = Field({}, description="Why a policy is not judged, by its name.")
    rejections: tuple[str, ...] = Field(
        (), description="Why the webhook or the API server would reject the pods."
    )
    patch: list[dict[str, Any]] | None = Field(
        None,
        description="The whole patch of all together; null if nothing differs, or if it is very "
        "long.",
    )
    trace: list[FieldResult] = Field(
        description="What would become of every setting, with all together."
    )


class ExceptionResult(_Model):
    """An exception that takes policies away from the pods, or has ended."""

    name: str = Field(description="The exception.")
    in_force: bool = Field(description="False if it has ended.")
    until: str = Field(description="When it ends.")
    reason: str = Field(description="Its reason, as its author wrote it.")
    policies: list[str] = Field(description="The policies that it takes away.")


class ShutResult(_Model):
    """Nodes that do not admit the pods, and why."""

    condition: str = Field(description="What does not hold on them.")
    nodes: list[str] = Field(description="Their names.")


class SurveyResult(_Model):
    """Which nodes admit the pods."""

    admitted: list[str] = Field(description="Names of nodes that admit the pods when empty.")
    shut: list[ShutResult] = Field(description="The others, by the first condition that fails.")


class NodesResult(_Model):
    """Which nodes admit the pods as they come, and as they would be."""

    before: SurveyResult = Field(description="For the pods as they come.")
    after: SurveyResult | None = Field(
        description="For the pods as they would be; null if no policy takes part."
    )
    on_demand: list[str] = Field(
        description="Autoscaled classes that could make a node, if none admits the pods."
    )
    unknown: str | None = Field(description="Why the nodes are unknown; null if they are known.")
    not_judged: list[str] = Field(
        description="Fields of the pods, and devices, that also decide about nodes, and that "
        "Fairlead does not check: at most the nodes named here can run the pods."
    )
    evicting: dict[str, int] = Field(
        description="Nodes that admit the pods and evict them, and after how many seconds."
    )


class LimitResult(_Model):
    """Why not all pods of an object can run at one time."""

    resource: str = Field(
        description="The resource of which there is too little, or what only one pod of a node can "
        "have, such as `host port 29500/TCP`; empty if no node admits the pods."
    )
    nodes: int = Field(description="How many nodes admit one of the pods.")
    least: str = Field(description="How much of it the smallest of these nodes has.")
    most: str = Field(description="How much of it the largest has.")
    requests: dict[str, str] = Field(
        description="What one pod requests of it, by the part of the object, such as worker."
    )


class RoomResult(_Model):
    """How many of an object's pods can run at one time, on nodes with pods of DaemonSets only."""

    asked: int = Field(description="How many pods the object wants to run at one time.")
    most: int = Field(description="No scheduler runs more of them at one time.")
    placed: int = Field(
        description="A packing was found that has a place for this number. A scheduler may "
        "find another one, with fewer pods."
    )
    limit: LimitResult | None = Field(
        description="Why not all can run; null if no limit was found."
    )
    on_demand: list[str] = Field(
        description="If not all can run, the autoscaled classes that could make nodes for those "
        "that lack them."
    )
    unjudged: list[str] = Field(
        description="Fields of the pods, and devices, that also limit how many run, and that "
        "Fairlead does not check."
    )
    most_now: int | None = Field(
        description="As `most`, less what other pods on the nodes request now; null if these are "
        "not read."
    )


class PodsResult(_Model):
    """What happens to pods of one object with equal decisions, and why."""

    object_: str = Field(alias="object", description="Kind and name: Job/train.")
    namespace: str = Field(description="The namespace of the pods.")
    pods: str = Field(description="Which pods of the object; empty for its only one.")
    count: int = Field(description="How many pods they are.")
    indexes: list[int] = Field(description="Those that were evaluated.")
    place: str = Field(description="Where the object was read: file:line:column, or cluster.")
    answer: str = Field(
        description="In one sentence: what happens to them, on how many nodes they can run, and "
        "what of it is not known."
    )
    identity: IdentityResult | None = Field(description="Null: no pods of a run.")
    result: WebhookResult | None = Field(description="The webhook's. Null: without policies.")
    reason: str = Field(description="Why they are rejected, left alone or not sent.")
    policies: list[PolicyAnswer] = Field(description="Every policy; those that match come first.")
    trace: list[FieldResult] = Field(description="What became of every setting.")
    audited: AuditResult | None = Field(description="Null if no policy under Audit matches.")
    exceptions: list[ExceptionResult] = Field(description="Exceptions that concern the pods.")
    warnings: list[str] = Field(description="Warnings that the pods' author gets, and others.")
    refusals: list[str] = Field(description="Why the API server rejects the pods as decided.")
    patch: list[dict[str, Any]] = Field(description="JSON Patch of the pods.")
    nodes: NodesResult | None = Field(description="Null if the nodes are unknown.")
    room: RoomResult | None = Field(
        description="How many pods of the whole object can run at one time: of Runs, Jobs, "
        "JobSets, LeaderWorkerSets and the kinds of Kubeflow. Null for one pod, and if the nodes "
        "are unknown."
    )

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return self.model_dump(mode="json", by_alias=True)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of PodsResult, draft 2020-12."""
    json_schema = PodsResult.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": DIALECT, **json_schema}


def result_of(replicas: Replicas) -> PodsResult:
    """Return the result of pods with equal decisions."""
    template, decision = replicas.template, replicas.decision
    surveys, audited = replicas.evaluation.nodes, replicas.evaluation.audited
    return PodsResult.model_validate(
        {
            "object": template.source.title,
            "namespace": replicas.arrival.namespace,
            "pods": replicas.pods,
            "count": replicas.count,
            "indexes": replicas.indexes,
            "place": template.source.place(template.path),
            "answer": answer_of(replicas),
            "identity": decision.identity._asdict() if decision.identity else None,
            "result": decision.result,
            "reason": decision.reason,
            "policies": answers(replicas.evaluation),
            "trace": [entry._asdict() for entry in decision.trace],
            "audited": audited
            and {**report(audited), "trace": [entry._asdict() for entry in audited.together.trace]},
            "exceptions": list(_exceptions(decision)),
            "warnings": replicas.warnings,
            "refusals": replicas.refusals,
            "patch": decision.patch,
            "nodes": surveys
            and {
                "before": _survey(surveys.before),
                "after": surveys.after and _survey(surveys.after),
                "onDemand": surveys.on_demand,
                "unknown": surveys.unread.unknown.reason if surveys.unread.what else None,
                "notJudged": surveys.not_judged,
                "evicting": surveys.evicting,
            },
            "room": replicas.room and _room(replicas.room),
        }
    )


def _survey(survey: Survey) -> dict[str, Any]:
    return {"admitted": survey.admitted, "shut": [exclusion._asdict() for exclusion in survey.shut]}


def _room(room: ObjectRoom) -> dict[str, Any]:
    limit = room.room.limit
    of_limit: dict[str, Any] = {}
    if limit:
        resource = limit.resource.removeprefix(ONLY_ONE)
        amounts = {"least": limit.least, "most": limit.most}
        of_limit = {
            "resource": resource,
            "nodes": limit.nodes,
            **{name: format_quantity(resource, amount) for name, amount in amounts.items()},
            "requests": {
                name: format_quantity(resource, amount) for name, amount in limit.requests.items()
            },
        }
    return {
        **room.room._asdict(),
        "limit": of_limit or None,
        "onDemand": room.on_demand,
        "unjudged": room.unjudged,
        "mostNow": room.now and room.now.most,
    }


def _exceptions(decision: Decision) -> Iterator[ExceptionResult]:
    """Yield all of them, those in force first."""
    for in_force, taken in ((True, decision.set_aside.by), (False, decision.set_aside.ended)):
        for exception, policies in taken:
            yield ExceptionResult(
                name=exception.name,
                in_force=in_force,
                until=exception.end,
                reason=exception.reason,
                policies=list(policies),
            )
