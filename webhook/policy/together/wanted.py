"""What several blocks of conditions want of one pod, as conditions that a witness is made by.

The run's kind, framework, role and index are taken as Fairlead's own labels, which tell them of a
pod of any system (see `webhook.identity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.placement import label_values
from webhook.policy.together.reach import requirements
from webhook.run.rendezvous.table import WORKER_ZERO_LEADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.shapes import Requirement
    from webhook.policy.match_model import Match

# The fields of a block that ask what a pod is in its run, with the label that says it.
_WORDS: Final = (
    ("frameworks", names.FRAMEWORK),
    ("roles", names.ROLE),
    ("replica_indexes", names.REPLICA_INDEX),
)


class Wanted(NamedTuple):
    """Conditions that must all hold.

    spaces: of each of these lists of globs one matches the namespace's name; none of other_spaces
    space_labels, labels: what is said of the namespace's labels, and of the pod's
    coordinator: all that is said of whether the pod leads
    resources, volumes: of each of these lists the pod has one; and none of no_resources, no_volumes
    """

    spaces: tuple[Sequence[str], ...] = ()
    other_spaces: tuple[str, ...] = ()
    space_labels: tuple[Requirement, ...] = ()
    labels: tuple[Requirement, ...] = ()
    coordinator: tuple[bool, ...] = ()
    resources: tuple[Sequence[str], ...] = ()
    no_resources: tuple[str, ...] = ()
    volumes: tuple[Sequence[str], ...] = ()
    no_volumes: tuple[str, ...] = ()

    def beside(self, other: Wanted) -> Wanted:
        """The conditions of both."""
        return Wanted._make(one + two for one, two in zip(self, other, strict=True))


def of_blocks(blocks: Iterable[Match]) -> Wanted:
    """What a pod needs to meet every block."""
    wanted = Wanted()
    for block in blocks:
        wanted = wanted.beside(_of_block(block))
    return wanted


def _of_block(block: Match) -> Wanted:
    return Wanted(
        spaces=_listed(block.namespaces),
        space_labels=tuple(requirements(block.namespace_selector)),
        labels=(*requirements(block.pod_selector), *_words(block)),
        coordinator=() if block.coordinator is None else (block.coordinator,),
        resources=_listed(block.resources),
        volumes=_listed(block.volumes),
    )


def _listed(values: Sequence[str] | None) -> tuple[Sequence[str], ...]:
    return (values,) if values else ()


def _words(block: Match) -> Iterator[Requirement]:
    if block.kinds:
        yield _of(names.KIND, "In", block.kinds)
    for field, key in _WORDS:
        if values := getattr(block, field):
            yield _of(key, "In", map(str, values))


def _of(key: str, operator: str, values: Iterable[str]) -> Requirement:
    return {"key": key, "operator": operator, "values": list(values)}


def ways_around(block: Match) -> Iterator[Wanted]:
    """Conditions of which each keeps a pod from meeting the block."""
    if block.namespaces:
        yield Wanted(other_spaces=tuple(block.namespaces))
    for each in requirements(block.namespace_selector):
        yield Wanted(space_labels=(label_values.negated(each),))
    for each in requirements(block.pod_selector):
        yield Wanted(labels=(label_values.negated(each),))
    if block.kinds:
        # A pod always has a kind: who says none is of the usual one.
        others = [kind for kind in names.KINDS if kind not in block.kinds]
        yield Wanted(labels=(_of(names.KIND, "In", others),))
    for field, key in _WORDS:
        if values := getattr(block, field):
            yield Wanted(labels=(_of(key, "NotIn", map(str, values)),))
    if block.coordinator is not None:
        yield Wanted(coordinator=(not block.coordinator,))
    if block.resources:
        yield Wanted(no_resources=tuple(block.resources))
    if block.volumes:
        yield Wanted(no_volumes=tuple(block.volumes))


def ways_to_lead(leads: bool) -> Iterator[Wanted]:
    """Labels of which each makes a pod lead its run, or keeps it from that."""
    if leads:
        yield Wanted(labels=(_of(names.ROLE, "In", sorted(names.COORDINATOR_ROLES)),))
        first = (
            _of(names.ROLE, "In", ["worker"]),
            _of(names.REPLICA_INDEX, "In", ["0"]),
            _of(names.FRAMEWORK, "In", sorted(WORKER_ZERO_LEADS)),
        )
        yield Wanted(labels=first)
        return
    no_role = _of(names.ROLE, "NotIn", names.COORDINATOR_ROLES)
    for key, values in ((names.REPLICA_INDEX, ["0"]), (names.FRAMEWORK, WORKER_ZERO_LEADS)):
        yield Wanted(labels=(no_role, _of(key, "NotIn", values)))
    yield Wanted(labels=(no_role, _of(names.ROLE, "NotIn", ["worker"])))
