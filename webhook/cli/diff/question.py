"""A comparison: the question, its input from files and a cluster, and the decisions on all pods."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Final

from webhook.admission.arrival import Cluster
from webhook.cli.cluster_surroundings import read_policies, read_world
from webhook.cli.decisions import miscounted, misshapen, not_asked
from webhook.cli.diff.comparison_input import (
    ComparisonInput,
    Pods,
    Template,
    read_pods,
)
from webhook.cli.diff.sets import read_set
from webhook.cli.live.live_answers import node_list
from webhook.cli.objects import (
    counted,
    default_priority_class,
    plugin_inputs,
    read_cluster_file,
    read_objects,
)
from webhook.cli.offline import merged, namespaces_among, read_nodes
from webhook.cli.options import CLUSTER, client_of
from webhook.comparison.compare import Comparison
from webhook.comparison.difference import Difference
from webhook.comparison.difference_report import JudgedPod, Maker, report
from webhook.errors import FairleadError, InvalidPod, InvalidRun, UnreadableInput
from webhook.evaluation.plugins import UNREAD, merge_inputs
from webhook.evaluation.replicas import evaluate_template
from webhook.evaluation.sending import nothing_sent
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World, labels_of
from webhook.identity import identify
from webhook.placement.daemon import on_node, template_nodes
from webhook.placement.nodes import by_name
from webhook.placement.pod import parse_pod
from webhook.shortening import first_few, one_line, shortened
from webhook.sources import SHIPPED
from webhook.workloads.template_search import unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from webhook.cli.diff.sets import Source
    from webhook.cli.options import Where
    from webhook.comparison.compare import Same
    from webhook.comparison.difference_report import Report
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import Evaluation
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object

# Maximum number of objects that a note names.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments and options. Without `pods`, the cluster's pods are compared."""

    old: Source
    new: Source
    pods: Sequence[Path]
    namespace: str
    namespaces_file: Path | None
    nodes: Where | None
    kubeconfig: Path | None
    context: str

    @property
    def asks_cluster(self) -> bool:
        """Whether part of the input comes from a cluster."""
        named = self.old.is_cluster or self.new.is_cluster or self.nodes is CLUSTER
        return named or not self.pods


def gather(question: Question) -> ComparisonInput:
    """Read all of the input.

    A cluster, if one is read, supplies what the files lack: labels of namespaces, the default
    PriorityClass, nodes. Raises UnreadableInput, InvalidDocuments and ClusterError.
    """
    if question.asks_cluster:
        return asyncio.run(_with_cluster(question))
    old, new = _sets(question, None)
    nothing = World(new, Cluster(), {}, datetime.now(UTC), None, None, UNREAD, None, None, None)
    world, pods = _of_files(question, nothing, new.sources.with_those_of(old.sources))
    return ComparisonInput(old, world, pods)


async def _with_cluster(question: Question) -> ComparisonInput:
    async with client_of(question.kubeconfig, question.context) as client:
        theirs = None
        notes: list[str] = []
        if question.old.is_cluster or question.new.is_cluster:
            from webhook.cli.live.served_policies import differing

            theirs = (await read_policies(client)).policies
            notes += await differing(client, theirs)
        old, new = _sets(question, theirs)
        if theirs is not None and theirs.exceptions:
            old, new, note = _excepted(question, old, new, theirs)
            notes += [note] if note else []
        sources = new.sources.with_those_of(old.sources)
        # The namespaces of pods in files are unknown before the files are read.
        within = [question.namespace] if question.namespace and not question.pods else []
        nodes = await node_list(client, CLUSTER)
        known = await read_world(client, new, within, nodes, notes)
        if known.configuration is not None and (nothing := nothing_sent(known.configuration)):
            # Without a webhook, the comparison shows what it would do.
            known = replace(known, configuration=None)
            notes.append(f"{nothing.reason}: the comparison shows the result as if they were sent")
        if question.pods:
            world, pods = _of_files(question, known, sources)
        else:
            world = _with_files(question, [], known)
            pods = await read_pods(client, question.namespace, world.namespaces, sources)
    return ComparisonInput(old, world, replace(pods, notes=[*notes, *pods.notes]))


def _excepted(
    question: Question, old: PolicySet, new: PolicySet, theirs: PolicySet
) -> tuple[PolicySet, PolicySet, str]:
    """Return both sets, with the cluster's exceptions added to files without any, and a note.

    Exceptions usually exist in the cluster only: a branch without them does not end them.
    """
    without = [
        source.text
        for source, policies in ((question.old, old), (question.new, new))
        if not source.is_cluster and not policies.exceptions
    ]
    if not without:
        return old, new, ""
    old = old if old.exceptions else old.with_exceptions_of(theirs)
    new = new if new.exceptions else new.with_exceptions_of(theirs)
    count = len(theirs.exceptions.by_name)
    what = (
        "the cluster's exception counts"
        if count == 1
        else f"the cluster's {count} exceptions count"
    )
    return old, new, f"{what} in {without[0]} too, which has none of its own"


def _of_files(question: Question, known: World, sources: SourceTable) -> tuple[World, Pods]:
    objects = read_objects(question.pods)
    namespace = question.namespace or "default"
    pods = pods_of_files(objects, question.pods, namespace, sources)
    return _with_files(question, objects, known), pods


def _with_files(question: Question, objects: Sequence[Object], known: World) -> World:
    """Return what evaluations depend on: from the objects, else from the files, else as it is
    known.

    Raises UnreadableInput.
    """
    file = read_cluster_file(question.namespaces_file) if question.namespaces_file else None
    default = file.default_priority_class if file else known.cluster.default_priority_class
    given = None if question.nodes is CLUSTER else question.nodes
    nodes = read_nodes(given) if given else known.nodes
    return replace(
        known,
        cluster=Cluster(default_priority_class(objects) or default or "", node=by_name(nodes)),
        namespaces=merged(file.namespaces if file else known.namespaces, namespaces_among(objects)),
        plugins=merge_inputs(plugin_inputs(objects), file.plugins if file else known.plugins),
        nodes=nodes,
    )


def _sets(question: Question, theirs: PolicySet | None) -> tuple[PolicySet, PolicySet]:
    """Both sets, `theirs` for the cluster's. Raises UnreadableInput with the errors of both."""
    found: list[PolicySet] = []
    problems: list[str] = []
    for source in (question.old, question.new):
        try:
            # A set with faults may have served until now; it does not become the new one.
            sound = source is question.new
            there = theirs if source.is_cluster and theirs else read_set(source, sound=sound)
            found.append(there)
        except FairleadError as error:
            problems += str(error).splitlines()
    if problems:
        raise UnreadableInput(list(dict.fromkeys(problems)))
    old, new = found
    return old, new


def pods_of_files(
    objects: Sequence[Object],
    paths: Sequence[Path],
    namespace: str,
    sources: SourceTable = SHIPPED,
) -> Pods:
    """Return the objects that create pods; `namespace` is for objects without one.

    Raises UnreadableInput with every invalid Run, or if no object creates pods.
    """
    makers: list[Template] = []
    problems: list[str] = []
    for each in objects:
        try:
            found = templates_of(each, objects, sources, namespace=namespace)
            makers += [Template(template, each.namespace or namespace) for template in found]
        except InvalidRun as error:
            problems += [f"{each.place()}: {each.title}: {line}" for line in error.problems]
    if problems:
        raise UnreadableInput(problems)
    not_read = unread(objects, sources)
    if not makers:
        there = f"only {counted(objects)}" if objects else "nothing"
        where = ", ".join(map(str, paths))
        raise UnreadableInput([f"{where}: it has no pod template, {there}", *not_read])
    return Pods(makers, not_read)


def compared(gathered: ComparisonInput) -> tuple[Report, Sequence[str]]:
    """Return the differences for all pods, and lines about what the API server did not say.

    Equal replicas after the thousandth are treated like the last one before, as in `fairlead
    mutate` and `fairlead run preview`. Raises UnreadableInput with every pod whose fields have the
    wrong shape, and with every value that is no number of pods.
    """
    judge = _Judge(gathered)
    found: list[JudgedPod] = []
    problems: list[str] = []
    for each in gathered.pods.makers:
        wrong = miscounted(each.template, gathered.world.policies.sources)
        problems += [line for line in wrong if line not in problems]
        try:
            found += judge.of_template(each)
        except InvalidPod as error:
            problems.append(misshapen(each.template, error))
    if problems:
        raise UnreadableInput(problems)
    return report(found), [*judge.unknown]


def daemon_set_notes(gathered: ComparisonInput) -> list[str]:
    """Return a note if DaemonSets' pods of runs are evaluated without their nodes."""
    if gathered.world.nodes is not None:
        return []
    titles = [
        one_line(each.template.source.title)
        for each in gathered.pods.makers
        if each.template.count is None and _is_of_run(each, gathered)
    ]
    if not titles:
        return []
    what = f"pods of {first_few(titles, _NAMED)} are evaluated by the template: a webhook that"
    cure = "the nodes are unknown here: give --nodes"
    return [f"{what} watches nodes rejects those whose node does not meet a requirement; {cure}"]


def _is_of_run(each: Template, gathered: ComparisonInput) -> bool:
    try:
        own = parse_pod(each.template.pod(0))
    except InvalidPod:
        return False  # reported by the decision
    labels = labels_of(each.namespace, gathered.world.namespaces)
    return any(
        identify(own.labels, own.annotations, labels, policies.sources) is not None
        for policies in (gathered.old, gathered.world.policies)
    )


class _Judge:
    def __init__(self, gathered: ComparisonInput) -> None:
        new = gathered.world
        self._worlds = replace(new, policies=gathered.old), new
        self._comparison = Comparison(gathered.old, new.policies)
        # Lines about pods of which the API server did not say whether it takes them.
        self.unknown: dict[str, None] = {}

    def of_template(self, each: Template) -> Iterator[JudgedPod]:
        template, namespace = each.template, each.namespace
        source = template.source
        place = source.place(template.path)
        part = template.describe() if template.numbers and template.count == 1 else template.part
        maker = Maker(source.title, namespace, place, part, template.count, each.live)
        old, new = (evaluate_template(world, template, namespace) for world in self._worlds)
        if template.count is None and self._worlds[1].nodes:
            yield from self._by_node(maker, template.pod(0), old, new)
            return
        for one, other in product(old, new):
            if shared := sorted({*one.indexes} & {*other.indexes}):
                if one.indexes[0] == other.indexes[0]:
                    found = self._sides(one.evaluation, other.evaluation)
                else:
                    found = self._compare(template.pod(shared[0]), namespace, led=template.led)
                for index in shared:
                    more = one.more if index == one.indexes[-1] else 0
                    yield JudgedPod(maker, template.numbers_of([index])[0], more, found)

    def _by_node(
        self, maker: Maker, pod: JsonObject, old: Sequence[Replicas], new: Sequence[Replicas]
    ) -> Iterator[JudgedPod]:
        """Yield a DaemonSet's pods: one for each node that its template admits, equal ones grouped.

        A group has the reason of its first pod, which names that pod's node.
        """
        namespace = maker.namespace
        there = [node.name for node in template_nodes(parse_pod(pod), self._worlds[1].nodes or ())]
        usual = self._compare(pod, namespace)
        if usual == "no run" or not there:
            yield JudgedPod(maker, 0, 0, usual)
            return
        one, other = _by_node_name(old, there), _by_node_name(new, there)
        alike: dict[tuple[int, int], list[str]] = {}
        for name in there:
            alike.setdefault((one[name], other[name]), []).append(name)
        for names in alike.values():
            found = self._compare(on_node(pod, names[0]), namespace)
            some = replace(maker, part=f"on {shortened(names)}") if len(alike) > 1 else maker
            yield JudgedPod(some, 0, len(names) - 1, found)

    def _compare(self, pod: JsonObject, namespace: str, *, led: bool = False) -> Difference | Same:
        old, new = (world.evaluate(pod, namespace, led=led) for world in self._worlds)
        return self._sides(old, new)

    def _sides(self, old: Evaluation, new: Evaluation) -> Difference | Same:
        found = self._comparison.compare(old, new)
        if isinstance(found, Difference):
            self.unknown |= dict.fromkeys(not_asked((old, new)))
        return found


def _by_node_name(groups: Sequence[Replicas], nodes: Sequence[str]) -> dict[str, int]:
    """Return the position of each node's group: the one that names it, else that of the rest."""
    rest = {name: at for at, each in enumerate(groups) if not each.nodes for name in nodes}
    return rest | {name: at for at, each in enumerate(groups) for name in each.nodes}
