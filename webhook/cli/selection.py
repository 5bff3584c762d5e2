"""Which pods a command decides on, under which policies: the options, and what they select."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import click

from webhook.cli.dry_run import server_of
from webhook.cli.exit_codes import UNKNOWN, errors_exit
from webhook.cli.output import print_notes, say
from webhook.dns_names import is_subdomain
from webhook.questions.class_history import HISTORY, history_of
from webhook.questions.dry_run import DRY_RUN_HELP
from webhook.questions.where import CLUSTER, Where, WhereType, paths_of
from webhook.settings import setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.nodes import Node
    from webhook.questions.live.focus import Focus
    from webhook.questions.live.live_objects import ObjectReference
    from webhook.questions.live.live_pods import Answers
    from webhook.questions.offline import Offline

_TYPE: Final = re.compile(r"[A-Za-z][-A-Za-z0-9.]*")
FailOn: TypeAlias = Literal["rejected", "no-node", "warning", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which pods, under which policies: the options of `explain` and `mutate`."""

    words: tuple[str, ...]
    kubeconfig: Kubeconfig
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
    dry_run: str | None = setting("--dry-run", type=click.Choice(["server"]), help=DRY_RUN_HELP)
    history: tuple[tuple[str, int, timedelta | None], ...] = setting("--history", **HISTORY)
    fail_on: tuple[FailOn, ...] = setting(
        "--fail-on",
        multiple=True,
        type=click.Choice(get_args(FailOn)),
        help="What gives exit code 1, in addition to a rejected pod. no-node: no node "
        "admits a pod (requires --nodes). warning: a pod gets a warning. unknown: a value "
        "that policies need is unknown. Repeatable.",
    )

    def server(self) -> Server | None:
        """Return how to ask the API server about pods as decided; None if it is not asked."""
        return server_of(self.kubeconfig) if self.dry_run else None

    @property
    def live(self) -> bool:
        """Whether it selects objects of a cluster. Raises UsageError for options that exclude or
        require each other."""
        if "no-node" in self.fail_on and self.nodes is None:
            raise click.UsageError("--fail-on no-node wants --nodes FILE, or --nodes cluster")
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
        if self.words and self.history:
            raise click.UsageError("--history is for -f: a live pod has its own history")
        return bool(self.words)


def read_files(selection: Selection) -> Offline:
    """Read the files, and the cluster where the word `cluster` is given.

    With the cluster's policies, everything else that evaluations depend on is read too. If the
    cluster does not answer, the command exits with UNKNOWN. Raises FairleadError and UsageError.
    """
    from webhook.questions.offline import read_nodes, read_offline, with_nodes

    known: World | None = None
    nodes: Sequence[Node] | None = None
    notes: list[str] = []
    if CLUSTER in (*selection.policies, selection.nodes):
        with errors_exit(UNKNOWN):
            known, nodes = selection.kubeconfig.ask(lambda client: _read(client, selection, notes))
    offline = read_offline(
        selection.filenames,
        known or paths_of(selection.policies),
        selection.namespace or "default",
        selection.namespaces_file,
    )
    if selection.nodes is not None and selection.nodes is not CLUSTER:
        nodes = read_nodes(selection.nodes)
    world = replace(
        with_nodes(offline.world, nodes),
        server=selection.server(),
        history=history_of(selection.history, offline.world.policies),
    )
    return replace(offline, world=world, notes=notes)


async def _read(
    client: Client, selection: Selection, notes: list[str]
) -> tuple[World | None, Sequence[Node] | None]:
    """Return the cluster's world, if its policies are asked for, and its nodes, if they are."""
    from webhook.questions.cluster_surroundings import read_world
    from webhook.questions.live.live_answers import node_list, policy_set
    from webhook.questions.live.served_policies import differing

    nodes = await node_list(client, CLUSTER) if selection.nodes is CLUSTER else None
    if CLUSTER not in selection.policies:
        return None, nodes
    policies = await policy_set(client, ())
    notes += await differing(client, policies)
    return await read_world(client, policies, [], nodes, notes), nodes


def fails(
    wanted: Sequence[FailOn],
    decided: Sequence[Replicas],
    unknown: Iterable[str],
) -> bool:
    """Return whether something of these kinds was found; a rejection, and a refusal, always counts.

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
    """Return the answers about live objects. An error is printed, and ends the command."""
    from webhook.questions.live.focus import Focus, check_policy
    from webhook.questions.live.live_answers import ask

    targets = parse_references(selection.words)
    with errors_exit(UNKNOWN):
        namespace = selection.namespace or selection.kubeconfig.namespace()
        answers = selection.kubeconfig.ask(
            lambda client: ask(client, targets, namespace, selection.policies, selection.nodes)
        )
        stamps = [pod.stamp for pod in answers.pods if pod.stamp]
        stamped = [name for each in stamps for name in each.all_policies]
        check_policy(focus or Focus(), answers.policies, stamped)
    print_notes(answers.notes)
    return answers


def parse_references(words: tuple[str, ...]) -> list[ObjectReference]:
    """Return the objects that the words of a command line name. Raises UsageError."""
    from webhook.questions.live.live_objects import ObjectReference

    if all("/" in word for word in words):
        found = [ObjectReference(*word.split("/", 1)) for word in words]
    elif "/" in "".join(words):
        raise click.UsageError("give TYPE NAME..., or TYPE/NAME for each; not both")
    elif len(words) == 1:
        raise click.UsageError(
            f"{words[0]}: want a kind and a name, as in `pod train-0`, `job/train` or `job train`"
        )
    else:
        found = [ObjectReference(words[0], name) for name in words[1:]]
    for each in found:
        # Nothing else may become part of a path or a query.
        if not _TYPE.fullmatch(each.kind) or not is_subdomain(each.name):
            raise click.UsageError(
                f"{each.kind}/{each.name}: want a kind, such as pod, job or jobset, and a name of "
                "lower case letters, digits, '-', '.'"
            )
    return list(dict.fromkeys(found))
