"""A comparison: its input from files and a cluster, and the decisions on all pods."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.comparison.compare import Comparison, Same
from webhook.comparison.difference import Difference
from webhook.comparison.difference_report import JudgedPod, Maker, report
from webhook.errors import FairleadError, InvalidPod, UnreadableInput
from webhook.evaluation.audits import NODES_DECIDE
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.room import with_room
from webhook.evaluation.sending import nothing_sent
from webhook.placement.daemon import on_node, template_nodes
from webhook.placement.pod import parse_pod
from webhook.progress import Progress
from webhook.questions.class_history import history_of
from webhook.questions.cluster_surroundings import read_daemon_sets, read_policies, read_world
from webhook.questions.decisions import (
    ignored_fallbacks,
    miscounted,
    misshapen,
    not_asked,
    undecided_facts,
    unknown_nodes,
)
from webhook.questions.diff.comparison_input import Pods, is_live, read_pods
from webhook.questions.diff.report import Outcome, outcome_of
from webhook.questions.diff.sets import read_set
from webhook.questions.live.live_answers import node_list
from webhook.questions.offline import (
    read_nodes,
    read_offline,
    unknown_labels,
    unknown_values,
    unread_world,
    with_given,
    with_nodes,
)
from webhook.questions.plugins_option import with_plugins
from webhook.questions.where import CLUSTER
from webhook.shortening import first_few, one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.questions.diff.settings import Question
    from webhook.workloads.template import PodTemplate

# Maximum number of objects that a note names.
_NAMED: Final = 3


def answer(
    question: Question,
    server: Server | None = None,
    progress: Progress | None = None,
    report_notes: Callable[[Sequence[str]], None] = lambda _: None,
) -> Outcome:
    """Read everything and compare it.

    server: the API server that is asked about each pod. report_notes: gets the notes of the outcome
    as soon as they are known. Raises UnreadableInput, InvalidDocuments and ClusterError.
    """
    progress = progress or Progress()
    with progress.step("Reading the cluster"):
        old, world, pods = _gather(question)
    world = replace(world, server=server, history=history_of(question.history, old, world.policies))
    used = pods.makers
    unknown = [*pods.unknown]
    for policies in (old, world.policies):
        option = "--namespaces, or with --pods"
        unknown += unknown_labels(policies, used, world.namespaces, option)
        unknown += unknown_values(
            policies, (template for template in used if not is_live(template))
        )
    unknown = list(dict.fromkeys(unknown))
    report_notes([*pods.notes, *unknown])
    judge = Judge(old, world)
    with progress.step(f"Deciding on {len(used):,} pods and templates"):
        pod_report = report(judge.of_templates(used))
    notes, judged_unknown = [*judge.remarks()], [*judge.describe_unknown()]
    report_notes([*notes, *judged_unknown])
    return outcome_of(
        (question.old.text, old),
        (question.new.text, world.policies),
        None if world.nodes is None else len(world.nodes),
        [*pods.notes, *notes],
        [*unknown, *judged_unknown],
        pod_report,
    )


def _gather(question: Question) -> tuple[PolicySet, World, Pods]:
    """Return the old set, the world with the new one, and the pods. Raises as `_read` does."""
    old, world, pods = _read(question)
    return old, with_plugins(world, question.plugins), pods


def _read(question: Question) -> tuple[PolicySet, World, Pods]:
    """Return the old set, the world with the new one, and the pods.

    A cluster, if one is read, supplies what the files lack: labels of namespaces, the default
    PriorityClass, nodes. Raises UnreadableInput, InvalidDocuments and ClusterError.
    """
    if question.asks_cluster:
        return question.kubeconfig.ask(lambda client: _with_cluster(client, question))
    old, new = _sets(question, None)
    return old, *_of_files(question, unread_world(new), old)


async def _with_cluster(client: Client, question: Question) -> tuple[PolicySet, World, Pods]:
    theirs = None
    notes: list[str] = []
    unknown: list[str] = []
    if question.old.is_cluster or question.new.is_cluster:
        from webhook.questions.live.served_policies import differing

        theirs = (await read_policies(client)).policies
        notes += await differing(client, theirs)
    old, new = _sets(question, theirs)
    if theirs is not None and theirs.exceptions:
        old, new, note = _excepted(question, old, new, theirs)
        notes += [note] if note else []
    # The namespaces of pods in files are unknown before the files are read.
    within = [question.namespace] if question.namespace and not question.pods else []
    nodes = await node_list(client, CLUSTER)
    cluster_world = await read_world(client, new, within, nodes, unknown)
    # Both sets have the same room now: a change is of what the nodes can hold at all.
    plugins = cluster_world.plugins._replace(daemon_sets=await read_daemon_sets(client, notes))
    cluster_world = replace(cluster_world, plugins=plugins)
    if nothing := nothing_sent(cluster_world.configuration):
        # Without a webhook, the comparison shows what it would do.
        cluster_world = replace(cluster_world, configuration=None)
        notes.append(f"{nothing.reason}: the comparison shows the result as if they were sent")
    if question.pods:
        world, pods = _of_files(question, cluster_world, old)
    else:
        world = _with_nodes(question, with_given(cluster_world, [], question.namespaces_file))
        sources = new.sources.with_those_of(old.sources)
        pods = await read_pods(client, question.namespace, world.namespaces, sources)
    return old, world, replace(pods, unknown=[*unknown, *pods.unknown], notes=notes)


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


def _of_files(question: Question, cluster_world: World, old: PolicySet) -> tuple[World, Pods]:
    namespace = question.namespace or "default"
    sources = cluster_world.policies.sources.with_those_of(old.sources)
    offline = read_offline(
        question.pods, cluster_world, namespace, question.namespaces_file, sources
    )
    if offline.problems:
        raise UnreadableInput(offline.problems)
    return _with_nodes(question, offline.world), Pods(offline.templates, offline.unread)


def _with_nodes(question: Question, world: World) -> World:
    """Return the world with the nodes of the file, if there is one. Raises UnreadableInput."""
    given = question.nodes
    return world if given is None or given is CLUSTER else with_nodes(world, read_nodes(given))


def _sets(question: Question, theirs: PolicySet | None) -> tuple[PolicySet, PolicySet]:
    """Both sets, `theirs` for the cluster's. Raises UnreadableInput with the errors of both."""
    policy_sets: list[PolicySet] = []
    problems: list[str] = []
    for source in (question.old, question.new):
        try:
            # A set with faults may have served until now; it does not become the new one.
            sound = source is question.new
            policy_set = (
                theirs if source.is_cluster and theirs else read_set(source.text, sound=sound)
            )
            policy_sets.append(policy_set)
        except FairleadError as error:
            problems += str(error).splitlines()
    if problems:
        raise UnreadableInput(list(dict.fromkeys(problems)))
    old, new = policy_sets
    return old, new


class Judge:
    """Compares what the sets do to pods, and collects what is not known about them."""

    def __init__(self, old: PolicySet, new: World) -> None:
        self._worlds = replace(new, policies=old), new
        self._comparison = Comparison(old, new.policies)
        self._unasked: dict[str, None] = {}
        self._without_nodes: dict[str, None] = {}
        self._unjudged: dict[str, None] = {}
        # Titles of objects by what is not known.
        self._undecided: dict[str, dict[str, None]] = {}
        self._held: dict[str, None] = {}
        # Titles of objects by the line about fallbacks that never apply to their pods.
        self._ignored: dict[str, dict[str, None]] = {}

    def remarks(self) -> Iterator[str]:
        """Yield lines about DaemonSets that both sets reject, and fallbacks that never apply."""
        for line, sources in self._ignored.items():
            yield f"pods of {first_few(list(map(one_line, sources)), _NAMED)}: {line}"
        if held := list(map(one_line, self._held)):
            yield (
                f"both sets reject pods of {first_few(held, _NAMED)}: requirements hold for "
                "DaemonSets, also where only the namespace marks their pods, unless it has the "
                f"label {names.DAEMON_SETS}: {names.DAEMON_SETS_KEEP}"
            )

    def describe_unknown(self) -> Iterator[str]:
        """Yield lines about DaemonSets whose nodes are unknown, and what the API server did not
        say."""
        if titles := list(map(one_line, self._without_nodes)):
            yield (
                f"pods of {first_few(titles, _NAMED)} are evaluated by the template: "
                f"{NODES_DECIDE}; the nodes are unknown here: give --nodes"
            )
        for line, sources in self._undecided.items():
            yield f"pods of {first_few(list(map(one_line, sources)), _NAMED)}: {line}"
        yield from self._unasked
        yield from map(one_line, self._unjudged)

    def of_templates(self, templates: Sequence[PodTemplate]) -> list[JudgedPod]:
        """Return the results for all pods.

        Raises UnreadableInput with every pod whose fields have the wrong shape, and with every
        value that is no number of pods.
        """
        judged_pods: list[JudgedPod] = []
        problems: list[str] = []
        for _, members in groupby(templates, key=lambda template: id(template.source)):
            judged_pods += self._of_object([*members], problems)
        if problems:
            raise UnreadableInput(problems)
        return judged_pods

    def _of_object(self, templates: Sequence[PodTemplate], problems: list[str]) -> list[JudgedPod]:
        """Return the results for the pods of one object, with its rooms; errors are added to
        `problems`."""
        judged_pods: list[JudgedPod] = []
        before: list[Replicas] = []
        after: list[Replicas] = []
        for template in templates:
            wrong = miscounted(template, self._worlds[1].policies.sources)
            problems += [line for line in wrong if line not in problems]
            try:
                with one_pod():
                    old, new = self._evaluate(template)
                    judged = [*self._compare_groups(template, old, new)]
                judged_pods += judged
                before += old
                after += new
                if template.count is None and any(pod.difference == "rejected" for pod in judged):
                    self._held[f"{template.source.title} in {judged[0].maker.namespace}"] = None
            except InvalidPod as error:
                problems.append(misshapen(template, error))
            except Unjudged as error:
                self._unjudged[
                    f"{template.source.title} in {template.source.namespace}: {error}"
                ] = None
        rooms = _room_text(before), _room_text(after)
        if not any(rooms):
            return judged_pods
        return [
            replace(judged_pod, difference=judged_pod.difference.in_rooms(*rooms))
            if isinstance(judged_pod.difference, Difference)
            else judged_pod
            for judged_pod in judged_pods
        ]

    def _evaluate(self, template: PodTemplate) -> tuple[list[Replicas], list[Replicas]]:
        first, second = self._worlds
        namespace = template.source.namespace
        old = evaluate_template(first, template, namespace, other=second.policies)
        new = evaluate_template(second, template, namespace, other=first.policies)
        return old, new

    def _compare_groups(
        self, template: PodTemplate, old: Sequence[Replicas], new: Sequence[Replicas]
    ) -> Iterator[JudgedPod]:
        source = template.source
        namespace = source.namespace
        place = source.place(template.path)
        part = template.describe() if template.numbers and template.count == 1 else template.part
        maker = Maker(source.title, namespace, place, part, template.count, is_live(template))
        if template.count is None and self._worlds[1].nodes:
            yield from self._by_node(maker, template, old, new)
            return
        if any(replicas.evaluation.depends_on_node for replicas in (*old, *new)):
            self._without_nodes[source.title] = None
        for replicas in () if is_live(template) else (*old, *new):
            for line in undecided_facts(replicas):
                self._undecided.setdefault(line, {})[source.title] = None
        for line in (line for replicas in (*old, *new) for line in ignored_fallbacks(replicas)):
            self._ignored.setdefault(line, {})[source.title] = None
        for old_replicas, other in product(old, new):
            if shared := sorted({*old_replicas.indexes} & {*other.indexes}):
                if old_replicas.indexes[0] == other.indexes[0]:
                    outcome = self._sides(old_replicas.evaluation, other.evaluation)
                else:
                    outcome = self._compare(template, template.pod(shared[0]))
                for index in shared:
                    more = old_replicas.more if index == old_replicas.indexes[-1] else 0
                    yield JudgedPod(maker, template.numbers_of([index])[0], more, outcome)

    def _by_node(
        self, maker: Maker, template: PodTemplate, old: Sequence[Replicas], new: Sequence[Replicas]
    ) -> Iterator[JudgedPod]:
        """Yield a DaemonSet's pods: one for each node that its template admits, equal ones grouped.

        A group has the reason of its first pod, which names that pod's node.
        """
        pod, world = template.pod(0), self._worlds[1]
        arrival = world.arrival(pod, maker.namespace, led=False)
        made = parse_pod(arrival.made or arrival.pod)
        node_names = [node.name for node in template_nodes(made, world.nodes or ())]
        usual = self._compare(template, pod)
        if usual == "no run" or not node_names:
            yield JudgedPod(maker, 0, 0, usual)
            return
        old_groups, other = _by_node_name(old, node_names), _by_node_name(new, node_names)
        alike: dict[tuple[int, int], list[str]] = {}
        for name in node_names:
            alike.setdefault((old_groups[name], other[name]), []).append(name)
        for nodes in alike.values():
            outcome = self._compare(template, on_node(pod, nodes[0]))
            some = replace(maker, part=f"on {shortened(nodes)}") if len(alike) > 1 else maker
            yield JudgedPod(some, 0, len(nodes) - 1, outcome)

    def _compare(self, template: PodTemplate, pod: JsonObject) -> Difference | Same:
        old, new = (
            world.evaluate(
                pod,
                template.source.namespace,
                led=template.led,
                selector=template.selector,
                maker=template.source.kind,
            )
            for world in self._worlds
        )
        return self._sides(old, new)

    def _sides(self, old: Evaluation, new: Evaluation) -> Difference | Same:
        outcome = self._comparison.compare(old, new)
        if isinstance(outcome, Difference):
            self._unasked |= dict.fromkeys(not_asked((old, new)))
            for why in filter(None, map(unknown_nodes, (old, new))):
                self._unasked[f"which nodes admit some of the pods is unknown: {why}"] = None
        return outcome


def _room_text(groups: Sequence[Replicas]) -> str:
    """Return how many pods of one object can run at one time, if not all, and why.

    Empty if all can, and for pods that no node admits: each of them is without a node.
    """
    room = with_room(groups)[0].room if groups else None
    limit = room.room.limit if room and room.is_short else None
    return room.text if room and limit and limit.nodes else ""


def _by_node_name(groups: Sequence[Replicas], nodes: Sequence[str]) -> dict[str, int]:
    """Return the position of each node's group: the one that names it, else that of the rest."""
    rest = {name: at for at, replicas in enumerate(groups) if not replicas.nodes for name in nodes}
    return rest | {name: at for at, replicas in enumerate(groups) for name in replicas.nodes}
