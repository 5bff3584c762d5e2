"""Which pods a command decides on, under which policies: the options, and what they select."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import click

from webhook.cli.exit_codes import UNKNOWN, errors_exit
from webhook.cli.options import CLUSTER, WhereType, client_of, paths_of, setting, usual_kubeconfig
from webhook.cli.output import print_notes, say
from webhook.evaluation.plugins import UNREAD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.cli.live.finding import ObjectReference
    from webhook.cli.live.focus import Focus
    from webhook.cli.live.live_pods import Answers
    from webhook.cli.offline import Offline
    from webhook.cli.options import Where
    from webhook.evaluation.plugins import PluginInputs
    from webhook.evaluation.replicas import Replicas
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.object import Object

FailOn: TypeAlias = Literal["rejected", "no-node", "warning", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which pods, under which policies: the options of `explain` and `mutate`."""

    words: tuple[str, ...]
    kubeconfig: Path | None
    context: str
    filenames: tuple[Path, ...] = setting(
        "-f",
        "--filename",
        multiple=True,
        type=click.Path(exists=True, path_type=Path, allow_dash=True),
        metavar="PATH",
        help="Objects that create pods, YAML or JSON: a file, a folder with its subfolders, "
        "or - for standard input. Repeatable. Instead of objects of a cluster.",
    )
    policies: tuple[Where, ...] = setting(
        "--policies",
        multiple=True,
        type=WhereType(folders=True),
        metavar="PATH",
        help="A folder of policies, or a file (repeatable: all of them are one set), or "
        "`cluster`: the policies in the cluster, which is the default for live objects.",
    )
    namespace: str = setting(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="The namespace of live objects (default: that of the kubeconfig's context), or "
        "with -f of objects without one (default: default).",
    )
    namespaces_file: Path | None = setting(
        "--namespaces",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With -f, what `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints: "
        "labels that policies use, the default PriorityClass, and the RuntimeClasses and "
        "LimitRanges by which the API server changes pods before policies apply. Such objects "
        "may also be among those of -f.",
    )
    nodes: Where | None = setting(
        "--nodes",
        type=WhereType(folders=False),
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`. Shows on "
        "which of these nodes the pods may run.",
    )
    fail_on: tuple[FailOn, ...] = setting(
        "--fail-on",
        multiple=True,
        type=click.Choice(get_args(FailOn)),
        help="What gives exit code 1, in addition to a rejected pod. no-node: no node "
        "admits a pod (requires --nodes). warning: a pod gets a warning. unknown: a value "
        "that policies need is unknown. Repeatable.",
    )

    @property
    def live(self) -> bool:
        """Whether it selects objects of a cluster. Raises UsageError for neither or both."""
        if self.words and self.filenames:
            raise click.UsageError("give objects of the cluster, or files with -f; not both")
        if not self.words and not self.filenames:
            raise click.UsageError(
                "which pods? Name an object of the cluster, as in `pod train-0` or `job/train`, or "
                "give files with -f"
            )
        if self.filenames and not self.policies:
            raise click.UsageError("-f requires --policies PATH, or --policies cluster")
        if self.words and self.namespaces_file:
            raise click.UsageError("--namespaces is for -f: the cluster knows its namespaces")
        return bool(self.words)


class _ClusterAnswers(NamedTuple):
    """What was read from a cluster; None if it was not asked."""

    policies: PolicySet | None
    nodes: Sequence[Node] | None
    namespaces: Mapping[str, Mapping[str, str]]
    default_priority_class: str
    configuration: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()
    classes: Mapping[str, Collection[str]] | None = None
    plugins: PluginInputs = UNREAD


def read_files(selection: Selection) -> Offline:
    """Read the files, and the cluster where the word `cluster` is given.

    With the cluster's policies, its namespace labels and default PriorityClass are read too.
    If the cluster does not answer, the command exits with UNKNOWN. Raises FairleadError and
    UsageError.
    """
    import asyncio

    from webhook.cli.offline import merged, read_nodes, read_offline
    from webhook.evaluation.plugins import merge_inputs
    from webhook.placement.nodes import by_name

    answers = _ClusterAnswers(None, None, {}, "")
    paths = paths_of(selection.policies)
    if CLUSTER in (*selection.policies, selection.nodes):
        with errors_exit(UNKNOWN):
            answers = asyncio.run(_ask_cluster(selection))
    offline = read_offline(
        selection.filenames,
        paths if answers.policies is None else answers.policies,
        selection.namespace or "default",
        selection.namespaces_file,
    )
    nodes = selection.nodes
    known = answers.nodes if nodes is None or nodes is CLUSTER else read_nodes(nodes)
    cluster = replace(offline.cluster, node=by_name(known))
    if not cluster.default_priority_class:
        cluster = replace(cluster, default_priority_class=answers.default_priority_class)
    namespaces = merged(answers.namespaces, offline.namespaces)
    return replace(
        offline,
        namespaces=namespaces,
        cluster=cluster,
        nodes=known,
        configuration=answers.configuration,
        notes=answers.notes,
        classes=_with_given(answers.classes, offline.objects),
        plugins=merge_inputs(offline.plugins, answers.plugins),
    )


def _with_given(
    there: Mapping[str, Collection[str]] | None, objects: Sequence[Object]
) -> dict[str, Collection[str]] | None:
    """The cluster's classes, and those among the objects, which would be created too."""
    if there is None:
        return None
    return {
        kind: {*names, *(each.name for each in objects if each.kind == kind)}
        for kind, names in there.items()
    }


async def _ask_cluster(selection: Selection) -> _ClusterAnswers:
    from webhook.cli.cluster_surroundings import (
        read_classes,
        read_default_class,
        read_labels,
        read_plugin_inputs,
    )
    from webhook.cli.live.asking import node_list, policy_set
    from webhook.cli.live.missing_stamp import read_configuration, sending_notes
    from webhook.cli.live.served_policies import differing

    async with client_of(selection.kubeconfig, selection.context) as client:
        nodes = await node_list(client, CLUSTER) if selection.nodes is CLUSTER else None
        if CLUSTER not in selection.policies:
            return _ClusterAnswers(None, nodes, {}, "")
        policies = await policy_set(client, ())
        labels = await read_labels(client, "")
        default = await read_default_class(client)
        configuration = await read_configuration(client)
        notes = [*await differing(client, policies), *sending_notes(configuration)]
        classes = await read_classes(client)
        plugins = await read_plugin_inputs(client, classes, [""])
        return _ClusterAnswers(
            policies, nodes, labels, default, configuration, notes, classes, plugins
        )


def query_cluster(selection: Selection) -> Answers:
    """Ask the cluster about live objects. Raises FairleadError, and UsageError."""
    import asyncio

    from webhook.cli.live.finding import parse_references

    return asyncio.run(_asked(selection, parse_references(selection.words)))


async def _asked(selection: Selection, targets: Sequence[ObjectReference]) -> Answers:
    from webhook.cli.live.asking import ask
    from webhook.cli.live.live_pods import Question
    from webhook.kube.config import default_namespace

    kubeconfig = selection.kubeconfig or usual_kubeconfig()
    namespace = selection.namespace or default_namespace(kubeconfig, context=selection.context)
    question = Question(targets, namespace, selection.policies, selection.nodes)
    async with client_of(kubeconfig, selection.context) as client:
        return await ask(client, question)


def check_usage(selection: Selection) -> None:
    """Raise UsageError if an option requires another one."""
    if "no-node" in selection.fail_on and selection.nodes is None:
        raise click.UsageError("--fail-on no-node wants --nodes FILE, or --nodes cluster")


def fails(
    wanted: Sequence[FailOn],
    decided: Sequence[Replicas],
    unknown: Iterable[str],
) -> bool:
    """Whether something of these kinds was found; a rejection, and a refusal, always counts.

    `unknown` has lines about unknown facts. Pods without a node are named on stderr.
    """
    found = not all(each.admitted for each in decided)
    for each in decided if "no-node" in wanted else ():
        nodes = each.evaluation.nodes
        if nodes and each.decision.allowed and nodes.none_left:
            say("no node", f"{each.subject}: none of the {nodes.last.total} nodes admits it")
            found = True
    if "warning" in wanted:
        found |= any(each.warnings or each.decision.result == "not-sent" for each in decided)
    if "unknown" in wanted:
        found |= any(unknown)
    return found


def answers_or_exit(selection: Selection, focus: Focus | None = None) -> Answers:
    """The answers. An error is printed, and ends the command."""
    from webhook.cli.live.focus import Focus, check_policy

    with errors_exit(UNKNOWN):
        answers = query_cluster(selection)
        check_policy(focus or Focus(), answers.policies, _stamped(answers))
    print_notes(answers.notes)
    return answers


def _stamped(answers: Answers) -> list[str]:
    """The policies that stamps name."""
    from webhook.cli.live.live_pods import LivePod

    pods = [
        pod
        for each in answers.found
        for pod in ([each] if isinstance(each, LivePod) else each.pods)
    ]
    return [name for pod in pods if pod.stamp for name in pod.stamp.all_policies]
