"""What happened to the pods of objects at the question before, kept for those it cannot change.

Somebody who writes changes one policy or one object at a time. An answer is kept for an object that
is the same if no policy that comes, goes or changes matches one of its pods, before or after. All
else on which evaluations depend has to be equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.decision.engine import receive_pod, subject_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.decision.arrival import Arrival
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import World
    from webhook.policy.policy_set import Policy, PolicySet
    from webhook.questions.offline import Offline
    from webhook.workloads.template import PodTemplate

# With more policies that differ every object is evaluated.
_MOST_OTHERS: Final = 10
# Surveys of nodes that are kept for the next question.
_MOST_SURVEYS: Final = 500
# The fields of a World that are compared by their values; nodes are by their identity.
_COMPARED: Final = ("namespaces", "now", "configuration", "classes", "history")
_OF_POLICIES: Final = ("classes", "sources", "tested", "sets_labels")


class ObjectAnswer(NamedTuple):
    """What happens to the pods of one object.

    problems: errors of its templates; arrivals: all pods that were evaluated
    """

    templates: Sequence[PodTemplate]
    replicas: Sequence[Replicas]
    problems: Sequence[str]
    arrivals: Sequence[Arrival]


class KeptDecisions:
    """The answers of one question, for the next one."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._others: list[object] = []
        self._answers: dict[int, ObjectAnswer] = {}

    def answers(
        self,
        offline: Offline,
        groups: Iterable[Sequence[PodTemplate]],
        evaluate: Callable[[World, Sequence[PodTemplate]], ObjectAnswer],
    ) -> list[ObjectAnswer]:
        """Return the answer for each object, of which `groups` has the templates."""
        groups, world = list(groups), offline.world
        makers = {id(templates[0].source.value) for templates in groups}
        # Those without pods, such as Namespaces, may decide about the pods of all others.
        others: list[object] = [
            source.value for source in offline.objects if id(source.value) not in makers
        ]
        changed: Sequence[Policy] | None = None
        if self._world and others == self._others and _differ_in_policies(self._world, world):
            changed = _changed_policies(self._world.policies, world.policies)
            if self._world.policies.classes == world.policies.classes:
                surveyed = self._world.surveyed
                world.surveyed.update(surveyed if len(surveyed) <= _MOST_SURVEYS else {})
        answers = []
        for templates in groups:
            old = self._answers.get(id(templates[0].source.value))
            if old and changed is not None and _is_kept(old, templates, world, changed):
                answers.append(_with_templates(old, templates))
            else:
                answers.append(evaluate(world, templates))
        self._world, self._others = world, others
        self._answers = {id(answer.templates[0].source.value): answer for answer in answers}
        return answers


def _differ_in_policies(old: World, new: World) -> bool:
    """Return whether the worlds differ in nothing else."""
    if old.nodes is not new.nodes or old.server or new.server:
        return False
    return (
        all(getattr(old, name) == getattr(new, name) for name in _COMPARED)
        and replace(old.cluster, node=None) == replace(new.cluster, node=None)
        and repr(old.plugins) == repr(new.plugins)
    )


def _changed_policies(old: PolicySet, new: PolicySet) -> Sequence[Policy] | None:
    """Return the policies that only one set has; None if the sets differ in more, or too much."""
    if old.hash == new.hash:
        return ()
    if old.exceptions or new.exceptions:
        return None
    if any(getattr(old, name) != getattr(new, name) for name in _OF_POLICIES):
        return None
    gone = {id(policy): policy for policy in old.policies}
    come = {id(policy): policy for policy in new.policies}
    changed = [policy for key, policy in (gone | come).items() if (key in gone) != (key in come)]
    return changed if len(changed) <= _MOST_OTHERS else None


def _is_kept(
    old: ObjectAnswer, templates: Sequence[PodTemplate], world: World, changed: Sequence[Policy]
) -> bool:
    """Return whether the object is the same, and no changed policy matches one of its pods."""
    # The pods of a TrainJob are also those of its runtime.
    if templates[0].source.kind == "TrainJob" or list(templates) != list(old.templates):
        return False
    if [t.selector for t in templates] != [t.selector for t in old.templates]:
        return False
    if not changed:
        return True
    # A DaemonSet's pods arrive for each node; what plugins change arrives a second time.
    if any(r.template.count is None or r.evaluation.second for r in old.replicas):
        return False
    for arrival in old.arrivals:
        received = receive_pod(arrival, world.policies.sources)
        if received is None:
            continue
        subject = subject_of(arrival, received.original, received.identity, world.policies)
        if any(policy.matches(subject) for policy in changed):
            return False
    return True


def _with_templates(old: ObjectAnswer, templates: Sequence[PodTemplate]) -> ObjectAnswer:
    """Return the answer with the templates as they are read now, which are equal."""
    new = {id(before): template for before, template in zip(old.templates, templates, strict=True)}
    replicas = [replace(r, template=new[id(r.template)]) for r in old.replicas]
    return old._replace(templates=templates, replicas=replicas)
