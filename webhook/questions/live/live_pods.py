"""Live pods and workloads, compared with what today's policies would do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.comparison.difference import Gap, gaps
from webhook.decision.stamp import HASH_LENGTH
from webhook.errors import WrongUsage
from webhook.evaluation.audits import NODES_DECIDE
from webhook.evaluation.plugins import OF_PLUGINS
from webhook.evaluation.replicas import Replicas
from webhook.evaluation.result import answers
from webhook.evaluation.templates import history_in
from webhook.placement import pod as pods
from webhook.placement.fallback import History
from webhook.placement.stamp_text import Stamp, read_given_up, read_stamp
from webhook.placement.tolerations import within
from webhook.questions.live.focus import touched
from webhook.questions.live.pod_stamp import Origin, origin_of
from webhook.questions.offline import Offline
from webhook.run.pod_notes import UNKNOWN_STATE, PodState, read_state
from webhook.text.value_text import both_texts
from webhook.workloads.object import Object
from webhook.workloads.stored_pod import as_admitted, is_bound, without_binding
from webhook.workloads.template import PodTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.decision.decision import Decision
    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.world import World
    from webhook.placement.shapes import Toleration
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

_GIVEN = ("set", "kept")
# unknown:  the template or the node of the pod is not known
# rejected: by a policy; refused: by the API server
# not sent: the webhook would not be asked
State: TypeAlias = Literal["unknown", "rejected", "refused", "not sent", "otherwise", "same"]


class Difference(NamedTuple):
    """A field of a live pod that would be different if the pod were created now.

    then: the policies that its stamp credits with the field
    now:  the policies that would give it what it would have
    why:  of each policy that gave it then, why it would not now; of each that would now, why it
          left it out then
    """

    field: str
    has: Any
    would: Any
    then: tuple[str, ...]
    now: tuple[str, ...]
    why: tuple[str, ...]

    def __str__(self) -> str:
        has, would = both_texts(self.field, self.has, self.would)
        by = "; ".join(self.why) or ", ".join(filter(None, self.now))
        return f"{self.field} is {has}, and would be {would}" + (f" ({by})" if by else "")


@dataclass(frozen=True, slots=True)
class LivePod:
    """One live pod, as admission stored it.

    `today` is the decision on the pod as its author wrote it; `stamp` has what policies did at its
    creation. `unread`: the owner may not be read, so `today` may be about another text.
    `doubt`: why `today` may be wrong, because the template or the node of the pod is unknown.
    `doing`: what it does in the cluster.
    """

    pod: Object
    stamp: Stamp | None
    origin: Origin
    today: Replicas
    differences: Sequence[Difference]
    unread: bool = False
    doubt: str = ""
    doing: PodState = UNKNOWN_STATE

    @property
    def is_run(self) -> bool:
        """Whether it belongs to a run, by its labels now."""
        return self.today.decision.identity is not None

    @property
    def unstamped(self) -> bool:
        """Whether it belongs to a run, but has no stamp."""
        return self.stamp is None and self.is_run

    @property
    def state(self) -> State:
        """How it compares with a pod that is created now."""
        if self.doubt or (self.unread and self.is_run):
            return "unknown"
        if not self.today.decision.allowed:
            return "rejected"
        if self.today.refusals:
            return "refused"
        if self.today.decision.result == "not-sent":
            return "not sent"
        return "otherwise" if self.differences else "same"

    @property
    def same(self) -> bool:
        """Whether it is known to match today's policies."""
        return self.state == "same" and not self.unstamped

    @property
    def reason(self) -> str:
        """Why a new pod would be rejected, refused or not sent, why that is unknown, or how it
        would be different; empty if there is no more to say."""
        match self.state:
            case "unknown":
                return self.doubt or "what created it may not be read"
            case "rejected" | "not sent":
                return self.today.decision.reason
            case "refused":
                return "; ".join(self.today.refusals)
        return "; ".join(map(str, self.differences))


def compare_pod(world: World, pod: Object, templates: Sequence[PodTemplate] | None) -> LivePod:
    """Compare the pod; `templates` are those of its owner, None if it may not be read.

    Raises InvalidPod.
    """
    stamp = read_stamp(pod.metadata)
    admitted = Object(pod.file, as_admitted(pod.value))
    origin = origin_of(admitted, stamp, templates or (), world.policies)
    author = origin.pod
    led = any(template.led for template in templates or ())
    selector = next((template.selector for template in templates or ()), None)
    history = _history(pod, templates or (), world.now)
    evaluation = world.evaluate(
        author.value, author.namespace, led=led, history=history, selector=selector
    )
    identity = evaluation.decision.identity
    indexes = [index for index in (identity and identity.replica_index,) if index is not None]
    today = Replicas(PodTemplate(author, ()), (0,), 0, indexes, evaluation)
    placed = _of_today(world, admitted, stamp, today)
    if placed is None:
        differences = _differences(world, admitted, stamp, today, bound=is_bound(pod.value))
    else:
        differences = ()
        if not today.decision.allowed:
            today = replace(today, evaluation=placed)
    doubt = origin.doubt
    if today.evaluation.depends_on_node:
        doubt = f"{NODES_DECIDE}, and nodes are not read"
    doing = read_state(pod.value, world.now)
    return LivePod(admitted, stamp, origin, today, differences, templates is None, doubt, doing)


def _differences(
    world: World, pod: Object, stamp: Stamp | None, today: Replicas, *, bound: bool
) -> Sequence[Difference]:
    if not today.decision.allowed:
        return ()
    has = pods.parse_pod(pod.value)
    would = today.decision.placement or pods.parse_pod(today.arrival.pod)
    default = world.cluster.default_priority_class
    if default and not would.priority_class_name:
        would = would._replace(priority_class_name=default)
    if bound:
        would = would._replace(labels=without_binding(would.labels))
    return [
        _difference(gap, pod, stamp, today, world.policies)
        for gap in gaps(has, would)
        if gap.field not in OF_PLUGINS and not _covered(gap, has.tolerations, would.tolerations)
    ]


def _history(pod: Object, templates: Sequence[PodTemplate], now: datetime | None) -> History | None:
    """Return the history with which the controller of a Run would create the pod again now.

    None if its Run is unknown: then the pod itself has the last that is known.
    """
    labels = pod.metadata.get("labels") or {}
    number = str(labels.get(names.REPLICA_INDEX))
    source = templates[0].source if templates else None
    if now is None or source is None or not source.is_own_run or not number.isdecimal():
        return None
    return history_in(source, str(labels.get(names.ROLE)), int(number), now) or History(now)


def _of_today(world: World, pod: Object, stamp: Stamp | None, today: Replicas) -> Evaluation | None:
    """Return what today's set does with the pod as it is, if it placed it and would leave it so.

    What its author wrote need not be guessed then, which is not always possible: a value that both
    wrote is credited to the policy, and without it the policy may reject what it admitted.
    """
    if stamp is None or stamp.set_hash != world.policies.hash_in(pod.namespace)[:HASH_LENGTH]:
        return None
    if set(_given_up(pod.metadata)) != set(_given_up_now(today)):
        return None
    arrival = today.arrival
    evaluation = world.evaluate(pod.value, pod.namespace, led=arrival.led, history=arrival.history)
    return evaluation if evaluation.decision.result == "unchanged" else None


def _given_up(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the classes that a fallback gave up by the pod's stamp, and until when."""
    return dict(read_given_up(metadata))


def _given_up_now(today: Replicas) -> Mapping[str, str]:
    placement = today.decision.placement
    return _given_up({"annotations": placement.annotations}) if placement else {}


def _covered(gap: Gap, has: Sequence[Toleration], would: Sequence[Toleration]) -> bool:
    """Return whether each toleration is covered by a broader one on the other side.

    The PodTolerationRestriction plugin keeps only the broader one.
    """
    if not gap.field.startswith("tolerations["):
        return False
    return all(any(within(item, broad) for broad in would) for item in gap.has or ()) and all(
        any(within(item, broad) for broad in has) for item in gap.would or ()
    )


def _difference(
    gap: Gap, pod: Object, stamp: Stamp | None, today: Replicas, policies: PolicySet
) -> Difference:
    then = [
        policy
        for policy, fields in (stamp.policies.items() if stamp else ())
        if any(touched(field, gap.field, policies) for field in fields)
    ]
    now = [
        entry.policy
        for entry in today.decision.trace
        if entry.outcome in _GIVEN and touched(entry.field, gap.field, policies)
    ]
    gone = [policy for policy in then if policy not in now]
    unread = "left it out, as the selector of the pod's owner was not read"
    left_out = [
        f"{policy} {unread}"
        for policy, fields in (stamp.left_out.items() if stamp else ())
        if gap.field in fields and policy in now
    ]
    return Difference(
        *gap,
        tuple(then),
        tuple(dict.fromkeys(now)) if gap.would is not None else (),
        (
            *_why(gone, gap.field, today, policies),
            *left_out,
            *_by_history(gap.field, pod, today, policies),
        ),
    )


def _by_history(field: str, pod: Object, today: Replicas, policies: PolicySet) -> Iterator[str]:
    """Yield by which history the pod was placed, for each class whose fallback is another now."""
    then, now = _given_up(pod.metadata), _given_up_now(today)
    for name in sorted({*then, *now}):
        if (name in then) == (name in now) or not touched(f"capacity[{name}]", field, policies):
            continue
        setting = f"capacity[{name}]"
        by = dict.fromkeys(
            e.policy for e in today.decision.trace if e.field == setting and e.policy
        )
        until = f"class {name} is given up until {then.get(name) or now[name]}"
        by_then, by_now = (until, "it is required") if name in then else ("it was required", until)
        text = f"by the history with which the pod was created {by_then}, and by that of now"
        yield f"{', '.join(by)}: {text} {by_now}"


def _why(gone: Sequence[str], field: str, today: Replicas, policies: PolicySet) -> Iterator[str]:
    if today.decision.result == "not-sent":
        yield today.decision.reason
        return
    if gone and today.decision.identity is None:
        yield "the pod is not part of a run any more: no policy applies"
        return
    answer_by_policy = {answer.name: answer for answer in answers(today.evaluation)}
    for name in gone:
        answer = answer_by_policy.get(name)
        if answer is None:
            yield f"{name} is not among today's policies"
        elif answer.answer == "no":
            yield f"{name} does not match: {answer.why}"
        elif answer.answer == "audit":
            yield f"{name} is under audit here"
        elif answer.answer == "set aside":
            yield f"{name}: {answer.why}"
        else:
            yield f"{name} {_lost(today.decision, name, field, policies)}"


def _lost(decision: Decision, name: str, field: str, policies: PolicySet) -> str:
    entries: list[Entry] = [
        entry
        for entry in decision.trace
        if entry.policy == name and touched(entry.field, field, policies)
    ]
    if not entries:
        return "does not set it any more"
    return "; ".join(f"{entry.outcome}: {entry.reason}" for entry in entries)


@dataclass(frozen=True, slots=True)
class Answer:
    """An object: the decisions on its new pods, and its live pods, of which a pod is its only one.

    The text of a pod is that of its author.
    """

    source: Object
    templates: Sequence[PodTemplate]
    replicas: Sequence[Replicas]
    pods: Sequence[LivePod]
    is_pod: bool = False

    @property
    def same(self) -> bool:
        """Whether its live pods match today's policies, and new pods are sent to the webhook."""
        return all(
            replicas.admitted and replicas.decision.result != "not-sent"
            for replicas in self.replicas
        ) and all(pod.same for pod in self.pods)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers; `notes` name unknown facts, `unjudged` pods that cannot be judged, and why."""

    world: World
    answers: Sequence[Answer]
    notes: Sequence[str]
    unjudged: Sequence[str] = ()

    def asking(self, server: Server) -> Answers:
        """Return the answers, with the API server asked about pods as they would be now."""
        world = replace(self.world, server=server)

        def ask(replicas: Replicas) -> Replicas:
            return replace(replicas, evaluation=replace(replicas.evaluation, world=world))

        new_answers = []
        for answer in self.answers:
            pods = [replace(pod, today=ask(pod.today)) for pod in answer.pods]
            asked_replicas = [pods[0].today] if answer.is_pod else list(map(ask, answer.replicas))
            new_answers.append(replace(answer, replicas=asked_replicas, pods=pods))
        return replace(self, world=world, answers=new_answers)

    @property
    def policies(self) -> PolicySet:
        return self.world.policies

    @property
    def pods(self) -> list[LivePod]:
        return [pod for answer in self.answers for pod in answer.pods]

    @property
    def replicas(self) -> list[Replicas]:
        return [replicas for answer in self.answers for replicas in answer.replicas]

    @property
    def same(self) -> bool:
        """Whether every pod matches today's policies."""
        return all(answer.same for answer in self.answers)


def recreated(answers: Answers, *, whole: bool) -> Offline:
    """Return the objects, with pods as their authors wrote them. `whole`: they are printed as
    objects.

    Raises WrongUsage for a Run that is printed, because it has no pod in its text.
    """
    objects: list[Object] = []
    templates: list[PodTemplate] = []
    for answer in answers.answers:
        if whole and answer.source.is_own_run:
            name, namespace = answer.source.name, answer.source.namespace
            raise WrongUsage(
                f"a Run has no pod in its text: kubectl get run {name} -n {namespace} -o yaml | "
                "fairlead preview -f - -o objects prints its pods"
            )
        objects.append(answer.source)
        templates += answer.templates
    return Offline(answers.world, objects, templates)
