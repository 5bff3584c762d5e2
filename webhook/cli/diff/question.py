"""What was asked, and everything that it takes to answer: files, a repository, a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webhook.cli.cluster_options import client_of
from webhook.cli.diff import pods_in_files
from webhook.cli.diff.comparison_input import ComparisonInput, Facts
from webhook.cli.diff.sets import read_set
from webhook.cli.objects import read_objects
from webhook.cli.where import CLUSTER
from webhook.errors import FairleadError, UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.cli.diff.comparison_input import Pods
    from webhook.cli.diff.sets import Source
    from webhook.cli.where import Where
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.object import Object


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments and options. Without `pods` the cluster's are meant."""

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
        """Whether a cluster has part of the answer."""
        named = self.old.is_cluster or self.new.is_cluster or self.nodes is CLUSTER
        return named or not self.pods


def gather(question: Question) -> ComparisonInput:
    """Read everything.

    Where a cluster is asked at all, it also tells what the files do not: labels of namespaces, the
    default PriorityClass, nodes. Raises UnreadableInput, InvalidDocuments and ClusterError.
    """
    if question.asks_cluster:
        return asyncio.run(_with_cluster(question))
    old, new = _sets(question, None)
    facts, pods = _of_files(question, Facts())
    return ComparisonInput(old, new, facts, pods)


async def _with_cluster(question: Question) -> ComparisonInput:
    from webhook.cli.diff import pods_in_cluster

    async with client_of(question.kubeconfig, question.context) as client:
        theirs = None
        notes: list[str] = []
        if question.old.is_cluster or question.new.is_cluster:
            from webhook.cli.cluster_policies import read_policies
            from webhook.cli.live.served import differing

            theirs = (await read_policies(client)).policies
            notes += await differing(client, theirs)
        old, new = _sets(question, theirs)
        if theirs is not None and theirs.exceptions:
            old, new, note = _excepted(question, old, new, theirs)
            notes += [note] if note else []
        # Of pods in files nobody knows in which namespaces they stand before they are read.
        namespace = "" if question.pods else question.namespace
        told = await pods_in_cluster.read_facts(client, namespace)
        if question.pods:
            facts, pods = _of_files(question, told)
        else:
            facts = _facts(question, [], told)
            pods = await pods_in_cluster.read_pods(client, namespace, facts.namespaces)
    return ComparisonInput(old, new, facts, replace(pods, notes=[*notes, *pods.notes]))


def _excepted(
    question: Question, old: PolicySet, new: PolicySet, theirs: PolicySet
) -> tuple[PolicySet, PolicySet, str]:
    """Both sets, and what to say of it if the cluster's exceptions hold in files that have none.

    Exceptions are mostly written into the cluster alone: a branch without them ends none of them.
    """
    without = [
        source.said
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


def _of_files(question: Question, told: Facts) -> tuple[Facts, Pods]:
    objects = read_objects(question.pods)
    namespace = question.namespace or "default"
    pods = pods_in_files.read_pods(objects, question.pods, namespace)
    return _facts(question, objects, told), pods


def _facts(question: Question, objects: Sequence[Object], told: Facts) -> Facts:
    nodes = None if question.nodes is CLUSTER else question.nodes
    return pods_in_files.read_facts(objects, question.namespaces_file, nodes, told)


def _sets(question: Question, theirs: PolicySet | None) -> tuple[PolicySet, PolicySet]:
    """Both sets, `theirs` for the cluster's; or everything that is wrong with either."""
    found: list[PolicySet] = []
    problems: list[str] = []
    for source in (question.old, question.new):
        try:
            found.append(theirs if source.is_cluster and theirs else read_set(source))
        except FairleadError as error:
            problems += str(error).splitlines()
    if problems:
        raise UnreadableInput(list(dict.fromkeys(problems)))
    old, new = found
    return old, new
