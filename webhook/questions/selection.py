"""Which pods are asked about, under which policies: the settings, and the files that they name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import click

from webhook.errors import WrongUsage
from webhook.questions.class_history import HISTORY, history_of
from webhook.questions.completion import NAMESPACE, SELECTOR
from webhook.questions.dry_run import DRY_RUN_HELP
from webhook.questions.plugins_option import PLUGINS, PLUGINS_OPTION, with_plugins
from webhook.questions.where import CLUSTER, Where, WhereType, paths_of
from webhook.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.plugins import PluginInputs
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.nodes import Node
    from webhook.questions.offline import Offline
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

FailOn: TypeAlias = Literal["rejected", "no-node", "no-room", "warning", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which pods, under which policies: the options of `explain` and `preview`."""

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
        **NAMESPACE,
        default="",
        help="The namespace of live objects (default: that of the kubeconfig's context), or "
        "with -f of objects without one (default: default).",
    )
    everywhere: bool = setting(
        "-A",
        "--all-namespaces",
        is_flag=True,
        help="Live objects of all namespaces: all of one TYPE.",
    )
    selector: str = setting(
        "-l",
        "--selector",
        **SELECTOR,
        help="Live objects with these labels, such as team=vision: all of one TYPE.",
    )
    namespaces_file: Path | None = setting(
        "--namespaces",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With -f, what `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints: "
        "labels that policies use, the default PriorityClass, and the RuntimeClasses and "
        "LimitRanges by which the API server changes pods before policies apply. It may have "
        "DeviceClasses and Kueue's ResourceFlavors, too. Such objects may also be among those "
        "of -f.",
    )
    nodes: Where | None = setting(
        "--nodes",
        type=WhereType(folders=False),
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`. Shows on "
        "which of these nodes the pods may run.",
    )
    plugins: tuple[str, ...] | None = setting(PLUGINS, **PLUGINS_OPTION)
    dry_run: str | None = setting("--dry-run", type=click.Choice(["server"]), help=DRY_RUN_HELP)
    history: tuple[tuple[str, int, timedelta | None], ...] = setting("--history", **HISTORY)
    fail_on: tuple[FailOn, ...] = setting(
        "--fail-on",
        multiple=True,
        type=click.Choice(get_args(FailOn)),
        help="What gives exit code 1, in addition to a rejected pod. no-node: no node "
        "admits a pod (requires --nodes). no-room: an object's pods cannot all run at one time "
        "(requires --nodes). warning: a pod gets one, or a run cannot begin. unknown: nothing. For "
        "all of them, an unknown fact that could change the answer gives exit code 2. Repeatable.",
    )

    @property
    def lists(self) -> bool:
        """Whether it selects all objects of a kind that have its labels, not some by name."""
        return bool(self.selector or self.everywhere)

    @property
    def live(self) -> bool:
        """Whether it selects objects of a cluster. Raises WrongUsage for options that exclude or
        require each other."""
        for kind in {"no-node", "no-room"}.intersection(self.fail_on):
            if self.nodes is None:
                raise WrongUsage(f"--fail-on {kind} wants --nodes FILE, or --nodes cluster")
        if files := [word for word in self.words if _is_file(word)]:
            raise WrongUsage(f"{files[0]} is a file: give it with -f, as in `-f {files[0]}`")
        if self.words and self.filenames:
            raise WrongUsage("give objects of the cluster, or files with -f; not both")
        if self.everywhere and self.namespace:
            raise WrongUsage("give -n NAME, or -A for all namespaces; not both")
        if self.filenames and self.lists:
            raise WrongUsage("-l and -A are for objects of the cluster: leave them out with -f")
        if not self.words and not self.filenames:
            raise WrongUsage(
                "which pods? Name an object of the cluster, as in `pod train-0` or `job/train`, or "
                "all of a kind, as in `pods -l team=vision`, or give files with -f"
            )
        if self.words and self.namespaces_file:
            raise WrongUsage("--namespaces is for -f: the cluster knows its namespaces")
        if self.words and self.history:
            raise WrongUsage("--history is for -f: a live pod has its own history")
        return bool(self.words)


def _is_file(word: str) -> bool:
    """Return whether a word that should be TYPE or NAME is a file of manifests, or a folder."""
    return Path(word).suffix in (".yaml", ".yml", ".json") and Path(word).exists()


def read_selected_files(
    selection: Selection,
    server: Server | None,
    templates: Callable[[SourceTable], list[PodTemplate]] | None = None,
) -> Offline:
    """Read the files, and the cluster where the word `cluster` is given.

    With the cluster's policies, everything else that evaluations depend on is read too. `server` is
    asked about pods as decided. `templates` makes those of files that are read already, from the
    sources of the policies; without it policies are required. Raises
    FairleadError.
    """
    from webhook.evaluation.plugins import UNREAD, merge_inputs
    from webhook.policy.load import load
    from webhook.questions.cluster_surroundings import with_selecting
    from webhook.questions.offline import (
        Offline,
        read_nodes,
        read_offline,
        read_policies,
        unread_world,
        with_given,
        with_nodes,
    )

    if templates is None and not selection.policies:
        raise WrongUsage("-f requires --policies PATH, or --policies cluster")
    cluster_world: World | None = None
    nodes: Sequence[Node] | None = None
    inputs = UNREAD
    notes: list[str] = []
    if CLUSTER in (*selection.policies, selection.nodes):
        cluster_world, nodes, inputs = selection.kubeconfig.ask(
            lambda client: _read(client, selection, notes)
        )
    paths = paths_of(selection.policies)
    if templates is None:
        offline = read_offline(
            selection.filenames,
            cluster_world or paths,
            selection.namespace or "default",
            selection.namespaces_file,
        )
    else:
        read = cluster_world or unread_world(read_policies(paths) if paths else load({}).policies)
        world = with_given(read, [], selection.namespaces_file)
        offline = Offline(world, [], templates(read.policies.sources), [], [])
    if selection.nodes is not None and selection.nodes is not CLUSTER:
        nodes = read_nodes(selection.nodes)
    world = replace(
        with_nodes(offline.world, nodes),
        plugins=merge_inputs(offline.world.plugins, inputs),
        server=server,
        history=history_of(selection.history, offline.world.policies),
    )
    if CLUSTER in selection.policies:
        used = [template.source.namespace for template in offline.templates]
        world = selection.kubeconfig.ask(lambda client: with_selecting(client, world, used, notes))
    return replace(offline, world=with_plugins(world, selection.plugins), notes=notes)


async def _read(
    client: Client, selection: Selection, notes: list[str]
) -> tuple[World | None, Sequence[Node] | None, PluginInputs]:
    """Return the cluster's world, if its policies are asked for, its nodes, if they are, and what
    decides about nodes of its classes and plugins, if the world does not have it."""
    from webhook.evaluation.plugins import UNREAD, inputs_of, merge_inputs
    from webhook.questions.cluster_surroundings import read_beside, read_classes, read_world
    from webhook.questions.dry_run import read_running_plugins
    from webhook.questions.live.live_answers import node_list, policy_set
    from webhook.questions.live.served_policies import differing
    from webhook.sources import SHIPPED

    nodes, beside = None, UNREAD
    if selection.nodes is CLUSTER:
        nodes = await node_list(client, CLUSTER)
        beside = await read_beside(client, notes, SHIPPED)
    if CLUSTER not in selection.policies:
        running = await read_running_plugins(client, selection.namespace or "default")
        inputs = inputs_of(await read_classes(client))._replace(running=running)
        return None, nodes, merge_inputs(inputs, beside)
    policies = await policy_set(client, ())
    notes += await differing(client, policies)
    world = await read_world(client, policies, [], nodes, notes)
    return world, nodes, beside
