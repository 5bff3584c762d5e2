"""Which pods a command is to decide on, under which policies: the options put to use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from webhook.cli.cluster_options import client_of, usual_kubeconfig
from webhook.cli.where import CLUSTER, paths_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webhook.cli.fail_on import FailOn
    from webhook.cli.live.question import Answers
    from webhook.cli.live.words import Named
    from webhook.cli.offline import Offline
    from webhook.cli.where import Where
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet


@dataclass(frozen=True, slots=True)
class Selection:
    """The arguments and options as they were given."""

    words: tuple[str, ...]
    filenames: tuple[Path, ...]
    policies: tuple[Where, ...]
    namespace: str
    namespaces_file: Path | None
    nodes: Where | None
    kubeconfig: Path | None
    context: str
    fail_on: tuple[FailOn, ...] = ()

    @property
    def live(self) -> bool:
        """Whether objects of a cluster are meant. Raises UsageError if nothing is, or too much."""
        if self.words and self.filenames:
            raise click.UsageError("give objects of the cluster, or files with -f; not both")
        if not self.words and not self.filenames:
            raise click.UsageError(
                "which pods? Name an object of the cluster, as in `pod train-0` or `job/train`, or "
                "give files with -f"
            )
        if self.filenames and not self.policies:
            raise click.UsageError("-f wants --policies PATH, or --policies cluster")
        if self.words and self.namespaces_file:
            raise click.UsageError("--namespaces is for -f: the cluster knows its namespaces")
        return bool(self.words)


class _Told(NamedTuple):
    """What a cluster has told; None where it was not asked."""

    policies: PolicySet | None
    nodes: Sequence[Node] | None
    namespaces: Mapping[str, Mapping[str, str]]
    default_priority_class: str
    configuration: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()


def read_files(selection: Selection) -> tuple[Offline, Sequence[Node] | None]:
    """What the files say, and where the word `cluster` stands, the cluster.

    With its policies it also tells what no file does: the labels of namespaces, and the default
    PriorityClass. Raises FairleadError and UsageError.
    """
    from webhook.cli.offline import merged, read_nodes, read_offline
    from webhook.placement.nodes import by_name

    told = _Told(None, None, {}, "")
    paths = paths_of(selection.policies)
    if CLUSTER in (*selection.policies, selection.nodes):
        told = asyncio.run(_told(selection))
    offline = read_offline(
        selection.filenames,
        paths if told.policies is None else told.policies,
        selection.namespace or "default",
        selection.namespaces_file,
    )
    nodes = selection.nodes
    known = told.nodes if nodes is None or nodes is CLUSTER else read_nodes(nodes)
    cluster = replace(offline.cluster, node=by_name(known))
    if not cluster.default_priority_class:
        cluster = replace(cluster, default_priority_class=told.default_priority_class)
    namespaces = merged(told.namespaces, offline.namespaces)
    found = replace(
        offline,
        namespaces=namespaces,
        cluster=cluster,
        nodes=known,
        configuration=told.configuration,
        notes=told.notes,
    )
    return found, known


async def _told(selection: Selection) -> _Told:
    from webhook.cli.cluster_surroundings import read_default_class, read_labels
    from webhook.cli.live.asking import node_list, policy_set
    from webhook.cli.live.served import differing
    from webhook.cli.live.unstamped import read_configuration

    async with client_of(selection.kubeconfig, selection.context) as client:
        nodes = await node_list(client, CLUSTER) if selection.nodes is CLUSTER else None
        if CLUSTER not in selection.policies:
            return _Told(None, nodes, {}, "")
        policies = await policy_set(client, ())
        labels = await read_labels(client, "")
        default = await read_default_class(client)
        configuration = await read_configuration(client)
        notes = await differing(client, policies)
        return _Told(policies, nodes, labels, default, configuration, notes)


def ask_cluster(selection: Selection) -> Answers:
    """What is found of live objects. Raises FairleadError, and UsageError."""
    from webhook.cli.live.words import named

    return asyncio.run(_asked(selection, named(selection.words)))


async def _asked(selection: Selection, targets: Sequence[Named]) -> Answers:
    from webhook.cli.live.asking import ask
    from webhook.cli.live.question import Question
    from webhook.kube.config import default_namespace

    kubeconfig = selection.kubeconfig or usual_kubeconfig()
    namespace = selection.namespace or default_namespace(kubeconfig, context=selection.context)
    question = Question(targets, namespace, selection.policies, selection.nodes)
    async with client_of(kubeconfig, selection.context) as client:
        return await ask(client, question)
