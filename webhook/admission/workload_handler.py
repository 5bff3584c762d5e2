"""Warnings about the future pods of a workload that is being written. Never rejects."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.admission import review
from webhook.admission.handler import Reply, problem
from webhook.admission.workload_warnings import (
    PodOutcome,
    check_replicas,
    mark_on,
    not_read,
    nothing_of,
    write_warnings,
)
from webhook.decision.advice import SIGNATURE
from webhook.decision.arrival import OF_DAEMON_SET
from webhook.decision.engine import receive_pod
from webhook.decision.shape import Shapes
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN
from webhook.errors import ClusterError, InvalidPod, InvalidReview, InvalidRun, NotSynced
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.replicas import evaluate_template
from webhook.evaluation.room import with_room
from webhook.evaluation.world import World
from webhook.identity import misread, unknown_keys
from webhook.metric_names import ENGINE_ERRORS, WORKLOAD_WARNINGS
from webhook.placement.daemon import held_off
from webhook.placement.nodes import work
from webhook.placement.pod import parse_pod
from webhook.placement.pod_requests import requests
from webhook.placement.runtime_class import tolerating
from webhook.placement.trace import warning
from webhook.turns import Window
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template import MAX_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.admission.handler import Observer
    from webhook.admission.workload_warnings import Group
    from webhook.api_paths import ObjectPath
    from webhook.decision.arrival import DecisionInputs
    from webhook.decision.decision import ReceivedPod
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.plugins import PluginInputs
    from webhook.evaluation.replicas import Replicas
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

_logger = logging.getLogger(__name__)

# Templates that are checked. No realistic workload has more.
MOST_TEMPLATES: Final = 32
# Seconds for one answer, waiting included. The API server's timeout is two seconds, and the
# author of the workload waits as well.
BUDGET: Final = 0.5
# Reviews that are checked or queued. A review beyond this limit is answered without warnings. A
# parsed workload takes many times its bytes, so one is checked at a time and the others wait as
# bytes. All of them count against the server's in-flight limit, which pods share.
MOST_ASKED: Final = 6
# JSON values in a review. No realistic workload has a fifth of this, even though an update holds
# the object twice (new and old). A larger workload is not checked, and its author gets a warning:
# a Run with twice as many values blocks the event loop for half a second.
MOST_VALUES: Final = 32_768
# Bytes of a review whose pods are held against the pod schema as decided, at some 10 µs per KB.
MOST_BYTES: Final = 65_536
# Limit on the size of a DaemonSet's template times the number of nodes, as it is checked per node.
_MOST_WORK: Final = 200_000
# Limits on the nodes times the templates, and on the groups of equal pods, of which is counted how
# many run at one time: some 2 µs for each node, and 1 ms for each group.
_MOST_NODES: Final = 40_000
_MOST_GROUPS: Final = 16
# An empty user would mean "offline", where the engine trusts the pod's own metadata. The future
# pods come from a controller and are not trusted.
_CONTROLLER: Final = "system:fairlead:a-controller"
_CONTROLLERS: Final = {"DaemonSet": names.DAEMON_SET_CONTROLLER}


# Results by the pod's shape, its resource requests, and its labels that cannot be parsed.
_Known: TypeAlias = dict[tuple[bytes, tuple[tuple[str, int], ...], tuple[str, ...]], PodOutcome]


class _About(NamedTuple):
    """The workload of a review, without its content."""

    uid: str
    namespace: str
    kind: str
    name: str

    def line(self) -> dict[str, object]:
        """Return the fields to log. The template is left out because it may hold secrets."""
        workload = f"{self.kind}/{self.name}"
        return {"uid": self.uid, "namespace": self.namespace, "workload": workload}


class _Workload(NamedTuple):
    """The review of `size` bytes: `old` is the object to be replaced, None for a creation."""

    about: _About
    new: JsonObject
    old: JsonObject | None
    size: int


@dataclass(frozen=True, slots=True)
class _Facts:
    """The inputs for one workload.

    `unmarked` are the warnings for its pods without a run; `reached`: the webhook gets other ones.
    `small`: its pods are held against the pod schema as they are decided.
    """

    world: World
    shapes: Shapes
    namespace: str
    labels: Mapping[str, str]
    controller: str
    unmarked: tuple[str, ...]
    small: bool
    reached: bool


@dataclass(eq=False, repr=False, slots=True)
class WorkloadHandler:
    """Answer reviews of workloads: always allowed, with warnings about their future pods.

    `inputs` are the Handler's, which later decides on the pods. `pods_of` returns the pods of
    a workload and raises InvalidRun if it has no valid ones. `faults_of` returns the violations of
    the pod schema in its templates. `refers_to` returns the path in the API of an object that the
    pods depend on, else nothing; `read` reads it and raises ClusterError, and the other functions
    get it after the table of systems. `reaches` takes a pod's labels and its namespace's, and
    returns whether the API server would send such a pod to the webhook. `plugins` returns what the
    API server's plugins read, as far as it is known.
    """

    inputs: DecisionInputs
    observer: Observer
    _: KW_ONLY
    pods_of: Callable[..., Sequence[PodTemplate]]
    faults_of: Callable[..., Sequence[str]] = lambda *_: ()
    refers_to: Callable[[JsonObject], ObjectPath | None] = lambda _workload: None
    read: Callable[[ObjectPath], Awaitable[JsonObject]] | None = None
    reaches: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda _pod, _space: True
    plugins: Callable[[], PluginInputs] = lambda: UNREAD
    clock: Callable[[], float] = time.perf_counter
    budget: float = BUDGET
    _shapes: tuple[PolicySet, Shapes] | None = field(default=None, init=False)
    _asked: int = field(default=0, init=False)
    _turns: Window = field(default_factory=lambda: Window(1), init=False)

    async def handle(self, body: bytes) -> Reply:
        """Return the answer to the body of one POST. Raises nothing and rejects nothing."""
        self._asked += 1
        try:
            return await self._answer(body)
        except review.Unreadable as error:
            if not error.uid:
                return problem(400, "invalid", str(error))
            title = review.object_in(body)
            subject = f"{title}: " if title else ""
            texts = [f"{SIGNATURE}{subject}its pods were not checked: {error}"]
            answer = review.answer(error.uid, allowed=True, warnings=texts)
            return Reply(200, "unforeseen", answer)
        except InvalidReview as error:
            # Without a uid no answer is possible; the API server applies failurePolicy: Ignore.
            return problem(400, "invalid", str(error))
        finally:
            self._asked -= 1

    async def _answer(self, body: bytes) -> Reply:
        """Read the review. Raises InvalidReview."""
        workload = _parse_workload(body)
        about, refers_to = workload.about, self.refers_to(workload.new)
        # The parsed object takes many times its bytes, and the request may wait.
        del workload
        texts: Sequence[str] = ()
        result = "foreseen"
        try:
            if self._asked > MOST_ASKED:
                raise NotSynced(f"{MOST_ASKED} others are checked")
            texts = await self._warn_of_workload(body, about, refers_to)
        except (NotSynced, InvalidPod, TimeoutError, RecursionError) as error:
            result = "unforeseen"
            _logger.info("workload not checked", extra={**about.line(), "reason": str(error)})
        except Exception:
            result = "unforeseen"
            self.observer.count(ENGINE_ERRORS)
            _logger.exception("workload not checked", extra=about.line())
        if texts:
            self.observer.count(WORKLOAD_WARNINGS, by=len(texts))
            _logger.debug("workload warned of", extra={**about.line(), "warnings": len(texts)})
        return Reply(200, result, review.answer(about.uid, allowed=True, warnings=texts))

    async def _warn_of_workload(
        self, body: bytes, about: _About, refers_to: ObjectPath | None
    ) -> list[str]:
        async with asyncio.timeout(self.budget):
            labels = await self.inputs.namespaces.labels(about.namespace)
            beside: Sequence[JsonObject] = ()
            if refers_to and self.read:
                try:
                    beside = [await self.read(refers_to)]
                except ClusterError as error:
                    return not_read(about.kind, about.name, refers_to, error)
            async with self._turns.turn(about.namespace):
                return await self._warnings(_parse_workload(body), labels, beside)

    async def _warnings(
        self, workload: _Workload, labels: Mapping[str, str], beside: Sequence[JsonObject]
    ) -> list[str]:
        try:
            sources = self.inputs.serving().sources
            templates = self.pods_of(workload.new, sources, *beside)
        except InvalidRun as error:
            return nothing_of(workload.about.kind, workload.about.name, error.problems)
        if not templates:
            return []
        before = self._unchanged(workload, templates, sources, *beside)
        facts = self._facts(workload, labels, templates)
        # A change of scale leaves the pods as they were, and takes room.
        as_before = before is not None and _counts(before) == _counts(templates)
        nodes = () if as_before else self.inputs.nodes() or ()
        room = await asyncio.to_thread(_warn_of_room, facts, templates, nodes) if nodes else ()
        about = workload.about
        if before is not None:
            return write_warnings(about.kind, about.name, about.namespace, (), room)
        until = self.clock() + self.budget / 2
        groups: list[Group] = []
        for pods in templates[:MOST_TEMPLATES]:
            judge = partial(self._outcome, facts, {}, pods)
            for _ in check_replicas(pods, judge, groups):
                # Pods that are created meanwhile have priority: no request blocks on a warning.
                await asyncio.sleep(0)
                if self.clock() > until:
                    break
        # A large template takes too long for the event loop.
        faults = await asyncio.to_thread(self.faults_of, workload.new, sources, *beside)
        return write_warnings(about.kind, about.name, about.namespace, groups, [*faults, *room])

    def _unchanged(
        self,
        workload: _Workload,
        templates: Sequence[PodTemplate],
        *about: SourceTable | JsonObject,
    ) -> Sequence[PodTemplate] | None:
        """Return the templates before an update that leaves the pods as they were, such as a change
        of scale; None for any other."""
        if workload.old is None or (_marked(workload.new) and not _marked(workload.old)):
            return None
        try:
            before = self.pods_of(workload.old, *about)
        except InvalidRun:
            return None
        old, new = ([t.pod(0) for t in group] for group in (before, templates))
        return before if old == new else None

    def _facts(
        self, workload: _Workload, labels: Mapping[str, str], templates: Sequence[PodTemplate]
    ) -> _Facts:
        # The labels are read only if a template needs them: an author may write anything there.
        doubtful = any(template.unmarked for template in templates)
        policies = self.inputs.serving()
        if self._shapes is None or self._shapes[0] is not policies:
            self._shapes = policies, Shapes(policies)
        namespace = workload.about.namespace
        cluster, now, plugins = self.inputs.cluster(), self.inputs.now(), self.plugins()
        world = World.for_pods_as_sent(policies, cluster, {namespace: labels}, now, plugins)
        return _Facts(
            world,
            self._shapes[1],
            namespace,
            labels,
            _CONTROLLERS.get(workload.about.kind, _CONTROLLER),
            (mark_on(workload.about.kind),) if _marked(workload.new) else (),
            workload.size <= MOST_BYTES,
            doubtful and any(self._reached(template, labels) for template in templates),
        )

    def _reached(self, pods: PodTemplate, labels: Mapping[str, str]) -> bool:
        pod_labels = pods.pod(0)["metadata"].get("labels")
        return isinstance(pod_labels, dict) and self.reaches(pod_labels, labels)

    def _outcome(
        self, facts: _Facts, outcomes: _Known, pods: PodTemplate, pod: JsonObject
    ) -> PodOutcome:
        arrival = facts.world.arrival(
            pod,
            facts.namespace,
            led=pods.led,
            user=facts.controller,
            selector=pods.selector,
        )
        received = receive_pod(arrival, facts.world.policies.sources)
        if received is None:
            metadata = pod["metadata"]
            keys = metadata.get("labels") or {}, metadata.get("annotations") or {}
            missed = (pods.unmarked,) if pods.unmarked and facts.reached else ()
            return PodOutcome(warnings=(*facts.unmarked, *missed, *unknown_keys(*keys)))
        if not self.reaches(received.original.labels, facts.labels):
            return PodOutcome()
        shape = facts.shapes.shape_of(received)
        if shape is None:
            return self._judge_pod(received, facts)
        # The result also depends on the pod's resource requests, which limit the nodes with room,
        # and on Fairlead's own keys that cannot be parsed, which no policy can match.
        slips = misread(received.original.labels, pod["metadata"].get("annotations") or {})
        alike = shape, tuple(sorted(requests(pod["spec"]).items())), slips
        if alike not in outcomes:
            outcomes[alike] = self._judge_pod(received, facts)
        return outcomes[alike]

    def _judge_pod(self, received: ReceivedPod, facts: _Facts) -> PodOutcome:
        evaluation = facts.world.decided(received.arrival)
        decision, texts = evaluation.decision, [*evaluation.warnings]
        nodes = self.inputs.nodes()
        final = decision.placement
        effort = work(final) * len(nodes) if nodes and final else 0
        if nodes and final and received.keeps == OF_DAEMON_SET and effort <= _MOST_WORK:
            off = held_off(evaluation.made, final, nodes)
            if off.nodes:
                texts.append(warning(f"its pods would be rejected {off}"))
            texts += evaluation.stranded(nodes)
        if no_node := self._no_node(evaluation):
            texts.append(no_node)
        refusals = evaluation.refusals if facts.small and decision.allowed else ()
        rejection = "; ".join(refusals) if decision.allowed else decision.reason
        return PodOutcome(rejection, tuple(texts))

    def _no_node(self, evaluation: Evaluation) -> str:
        """Return why no node admits the pod, as the API server stores it; empty if one does."""
        pod, decision, world = evaluation.arrival.pod, evaluation.decision, evaluation.world
        name = decision.placement.runtime_class_name if decision.placement else ""
        if name and name in world.plugins.runtime_classes and decision.allowed:
            stored = evaluation.stored()
            decision = decision._replace(placement=parse_pod(stored))
            merged = {key: stored["spec"].get(key) for key in ("runtimeClassName", "overhead")}
            pod = {**pod, "spec": {**pod["spec"], **merged}}
        else:
            # An unknown class may add tolerations.
            spec = {key: value for key, value in pod["spec"].items() if key != "runtimeClassName"}
            pod = {**pod, "spec": spec}
        if decision.placement and (more := evaluation.possible_tolerations):
            # Plugins that may run, too.
            decision = decision._replace(placement=tolerating(decision.placement, more))
        return self.inputs.unplaceable(pod, decision, world.policies)


def _parse_workload(body: bytes) -> _Workload:
    """Read the review. Raises InvalidReview."""
    request = review.parse_review(body, most_values=MOST_VALUES)
    old = request.get("oldObject")
    new: JsonObject = review.member(request, "object", dict, "request.object")
    name = review.optional(request, "name", "request.name", longest=MAX_SUBDOMAIN)
    about = _About(
        uid=request["uid"],
        namespace=review.optional(request, "namespace", "request.namespace", longest=MAX_SUBDOMAIN),
        kind=str(new.get("kind"))[:MAX_LABEL],
        name=(name or Object(ANSWERED, new).name)[:MAX_SUBDOMAIN],
    )
    return _Workload(about, new, old if isinstance(old, dict) else None, len(body))


def _warn_of_room(
    facts: _Facts, templates: Sequence[PodTemplate], nodes: Sequence[Node]
) -> list[str]:
    """Return why not all pods of the workload can run at one time on these nodes."""
    size = sum(min(template.count or 0, MAX_REPLICAS) for template in templates)
    if size > MAX_REPLICAS or len(nodes) * len(templates) > _MOST_NODES:
        return []
    world = replace(facts.world, nodes=nodes)
    groups: list[Replicas] = []
    for template in templates:
        groups += evaluate_template(world, template, facts.namespace)
    labels = [replicas.arrival.pod["metadata"].get("labels") or {} for replicas in groups]
    # Kueue may add tolerations as it admits them.
    queued = any(names.KUEUE_QUEUE in pod_labels for pod_labels in labels)
    if queued or len(groups) > _MOST_GROUPS or not any(r.decision.identity for r in groups):
        return []
    room = with_room(groups)[0].room
    return [room.warning] if room and room.warning else []


def _counts(templates: Sequence[PodTemplate]) -> list[int | None]:
    return [template.count for template in templates]


def _marked(workload: JsonObject) -> bool:
    return Object(ANSWERED, workload).is_labelled
