"""Tells who writes a workload what its pods will meet: warnings, and never a refusal."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from webhook import names
from webhook.admission import review
from webhook.admission.advice import warnings
from webhook.admission.arrival import OF_DAEMON_SET, Arrival
from webhook.admission.engine import decide_seen, rejections_if_held, see
from webhook.admission.foreseen import Fate, look, nothing_of, words
from webhook.admission.handler import Reply, problem
from webhook.admission.shape import Shape, Shapes
from webhook.errors import InvalidPod, InvalidReview, InvalidRun, NotSynced
from webhook.identity import misread
from webhook.placement.daemon import held_off
from webhook.placement.nodes import work
from webhook.placement.pod_requests import requests
from webhook.placement.trace import warning
from webhook.workloads.object import ANSWERED, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from webhook.admission.arrival import Cluster
    from webhook.admission.evaluation import ReceivedPod
    from webhook.admission.foreseen import Group, Pods
    from webhook.admission.grounds import Grounds
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet

_logger = logging.getLogger(__name__)

# Templates that are looked at: no workload that people write has more.
MOST_TEMPLATES: Final = 32
# Seconds in which one answer may be thought about, all waiting included. The API server waits for
# two: whoever writes the workload waits with it.
BUDGET: Final = 0.5
# Reviews that are looked at or wait for it; a review beyond these is answered without warnings. A
# workload that was read takes many times its bytes: so one is looked at, and what waits is held as
# bytes. All of them are in flight, which pods need as well.
MOST_ASKED: Final = 6
# JSON values in a review. No workload that people write has a tenth, be it there twice, the new and
# the old. One that has more is answered with an error, which the API server ignores here.
MOST_VALUES: Final = 65_536
# What a DaemonSet's template asks of all nodes together, for it is held against each.
_MOST_WORK: Final = 200_000
# Characters of a kind (apimachinery, validation.DNS1035LabelMaxLength).
_LONGEST_KIND: Final = 63
# Not empty, as it would be offline: the pods will come from a controller, and what they say of
# themselves is not believed.
_CONTROLLER: Final = "system:fairlead:a-controller"
_CONTROLLERS: Final = {"DaemonSet": names.DAEMON_SET_CONTROLLER}


# What was judged, by the shape of the pod, what it asks of a node, and labels that are misread.
_Known: TypeAlias = dict[tuple[Shape, tuple[tuple[str, int], ...], tuple[str, ...]], Fate]


class Observer(Protocol):
    """What counts; called on the event loop's thread."""

    def warned_of_workload(self, warnings: int) -> None:
        """So many warnings were given on one workload."""

    def engine_failed(self) -> None:
        """One look ended in an exception."""


class _About(NamedTuple):
    """Which workload a review is about, without what it holds."""

    uid: str
    namespace: str
    kind: str
    name: str

    def line(self) -> dict[str, object]:
        """What is logged of it. Never its template: that may hold secrets."""
        workload = f"{self.kind}/{self.name}"
        return {"uid": self.uid, "namespace": self.namespace, "workload": workload}


class _Workload(NamedTuple):
    """The review: `old` is what is to be replaced, None for a creation."""

    about: _About
    new: JsonObject
    old: JsonObject | None


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the look at one workload goes by; `unmarked` is what its pods of no run are told."""

    policies: PolicySet
    shapes: Shapes
    cluster: Cluster
    namespace: str
    labels: Mapping[str, str]
    controller: str
    now: datetime
    unmarked: tuple[str, ...]


class Foresight:
    """Answers reviews of workloads: always allowed, with what their pods will meet.

    `grounds` are the Handler's, which will decide on the pods. `pods_of` finds the pods that a
    workload makes, and raises InvalidRun if it can make none. `faults_of` tells what the pod schema
    says against its templates. `reaches`, of a pod's labels and its namespace's: whether such a pod
    would come to us at all.
    """

    def __init__(
        self,
        grounds: Grounds,
        observer: Observer,
        *,
        pods_of: Callable[[JsonObject], Sequence[Pods]],
        faults_of: Callable[[JsonObject], Sequence[str]] = lambda _: (),
        reaches: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda _pod, _space: True,
        clock: Callable[[], float] = time.perf_counter,
        budget: float = BUDGET,
    ) -> None:
        self._grounds = grounds
        self._observer = observer
        self._pods_of = pods_of
        self._faults_of = faults_of
        self._reaches = reaches
        self._clock = clock
        self._budget = budget
        self._shapes: tuple[PolicySet, Shapes] | None = None
        self._asked = 0
        self._look = asyncio.Lock()

    async def handle(self, body: bytes) -> Reply:
        """The answer to the body of one POST. Raises nothing, and refuses nothing."""
        self._asked += 1
        try:
            return await self._answer(body)
        except InvalidReview as error:
            # Without an uid there is no answer; the API server goes by its failurePolicy: Ignore.
            return problem(400, "invalid", str(error))
        finally:
            self._asked -= 1

    async def _answer(self, body: bytes) -> Reply:
        """Raises InvalidReview."""
        about = _read(body).about
        said: Sequence[str] = ()
        result = "foreseen"
        try:
            if self._asked > MOST_ASKED:
                raise NotSynced(f"{MOST_ASKED} others are looked at")
            said = await self._look_at(body, about)
        except (NotSynced, InvalidPod, TimeoutError, RecursionError) as error:
            result = "unforeseen"
            _logger.info("workload not looked at", extra={**about.line(), "reason": str(error)})
        except Exception:
            result = "unforeseen"
            self._observer.engine_failed()
            _logger.exception("workload not looked at", extra=about.line())
        if said:
            self._observer.warned_of_workload(len(said))
            _logger.debug("workload warned of", extra={**about.line(), "warnings": len(said)})
        return Reply(200, result, review.answer(about.uid, allowed=True, warnings=said))

    async def _look_at(self, body: bytes, about: _About) -> list[str]:
        async with asyncio.timeout(self._budget):
            labels = await self._grounds.labels(about.namespace)
            async with self._look:
                return await self._warnings(_read(body), labels)

    async def _warnings(self, workload: _Workload, labels: Mapping[str, str]) -> list[str]:
        try:
            templates = self._pods_of(workload.new)
        except InvalidRun as error:
            return nothing_of(workload.about.kind, workload.about.name, error.problems)
        if not templates or self._known(workload, templates):
            return []
        facts = self._facts(workload, labels)
        until = self._clock() + self._budget / 2
        found: list[Group] = []
        for pods in templates[:MOST_TEMPLATES]:
            judge = partial(self._fate, facts, {})
            for _ in look(pods, judge, found):
                # Pods that are created meanwhile come first: nobody waits for a warning.
                await asyncio.sleep(0)
                if self._clock() > until:
                    break
        # A large template takes longer than anybody else should wait.
        faults = await asyncio.to_thread(self._faults_of, workload.new)
        about = workload.about
        return words(about.kind, about.name, about.namespace, found, faults)

    def _known(self, workload: _Workload, templates: Sequence[Pods]) -> bool:
        """Whether the same pods were there before: a change of scale or status says nothing new."""
        if workload.old is None:
            return False
        try:
            before = self._pods_of(workload.old)
        except InvalidRun:
            return False
        if _marked(workload.new) and not _marked(workload.old):
            return False
        return [each.pod(0) for each in before] == [each.pod(0) for each in templates]

    def _facts(self, workload: _Workload, labels: Mapping[str, str]) -> _Facts:
        policies = self._grounds.serving()
        if self._shapes is None or self._shapes[0] is not policies:
            self._shapes = policies, Shapes((policies,))
        return _Facts(
            policies,
            self._shapes[1],
            self._grounds.cluster(),
            workload.about.namespace,
            labels,
            _CONTROLLERS.get(workload.about.kind, _CONTROLLER),
            self._grounds.now(),
            _unmarked(workload),
        )

    def _fate(self, facts: _Facts, known: _Known, pod: JsonObject) -> Fate:
        arrival = Arrival(pod, facts.namespace, facts.labels, facts.controller, facts.now)
        seen = see(arrival)
        if seen is None:
            return Fate(warnings=facts.unmarked)
        if not self._reaches(seen.own.labels, facts.labels):
            return Fate()
        shape = facts.shapes.of(seen)
        if shape is None:
            return self._judged(seen, facts)
        # Whether there is room for it on a node depends on what it asks for, too; and what of our
        # own keys cannot be read is told of by its text, which no policy may name.
        slips = misread(seen.own.labels, pod["metadata"].get("annotations") or {})
        alike = shape, tuple(sorted(requests(pod["spec"]).items())), slips
        if alike not in known:
            known[alike] = self._judged(seen, facts)
        return known[alike]

    def _judged(self, seen: ReceivedPod, facts: _Facts) -> Fate:
        decision = decide_seen(seen, facts.policies, facts.cluster)
        pod = seen.arrival.pod
        said = warnings(pod, decision)
        said += [
            warning(f"left alone, though a requirement is not met: {reason}")
            for reason in rejections_if_held(seen, facts.policies, facts.cluster)
        ]
        nodes = self._grounds.nodes()
        final = decision.placement
        much = work(final) * len(nodes) if nodes and final else 0
        if nodes and final and seen.keeps == OF_DAEMON_SET and much <= _MOST_WORK:
            off = held_off(seen.own, final, nodes)
            if off.nodes:
                said.append(warning(f"its pods would be rejected {off}"))
        if no_node := self._grounds.unplaceable(pod, decision, facts.policies):
            said.append(no_node)
        return Fate("" if decision.allowed else decision.reason, tuple(said))


def _read(body: bytes) -> _Workload:
    """Raises InvalidReview."""
    request = review.read(body, most_values=MOST_VALUES)
    old = request.get("oldObject")
    new: JsonObject = review.member(request, "object", dict, "request.object")
    name = review.optional(request, "name", "request.name", longest=review.LONGEST_NAME)
    about = _About(
        uid=request["uid"],
        namespace=review.optional(
            request, "namespace", "request.namespace", longest=review.LONGEST_NAME
        ),
        kind=str(new.get("kind"))[:_LONGEST_KIND],
        name=(name or Object(ANSWERED, new).name)[: review.LONGEST_NAME],
    )
    return _Workload(about, new, old if isinstance(old, dict) else None)


def _marked(workload: JsonObject) -> bool:
    return Object(ANSWERED, workload).is_labelled


def _unmarked(workload: _Workload) -> tuple[str, ...]:
    if not _marked(workload.new):
        return ()
    said = (
        f"the label {names.RUN} is on the {workload.about.kind} itself, and pods get those of "
        "their template: put it there too, or no policy reaches them"
    )
    return (said,)
