"""Checking policies, and holding them against nodes: from paths, or a cluster, to findings."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from webhook.cli.offline import read_nodes
from webhook.cli.where import CLUSTER
from webhook.errors import UnreadableInput
from webhook.policy import source
from webhook.policy.findings import condensed
from webhook.policy.objects import Objects
from webhook.policy.set_judgement import judge_set
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from webhook.cli.where import Where
    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import Feasibility
    from webhook.policy.findings import Finding
    from webhook.policy.model import PolicyDocument
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.reader import Documents


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. `policies` is None if there are errors in the documents themselves.

    `feasibility` is None without nodes, or without policies to hold against them.
    """

    files: Sequence[str]
    findings: Sequence[Finding]
    policies: PolicySet | None
    feasibility: Feasibility | None

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return len(self.findings) - self.errors


class Given(NamedTuple):
    """What is checked: documents, where they were read, and the nodes, if they are known."""

    places: Sequence[str]
    documents: Documents[PolicyDocument]
    nodes: Sequence[Node] | None


def read(paths: Sequence[Where], nodes: Where | None, client: Callable[[], Client]) -> Given | None:
    """What stands at the paths; None if that is nothing. The word `cluster` asks the cluster.

    Raises UnreadableInput, and ClusterError.
    """
    told = asyncio.run(_told(client, paths, nodes)) if CLUSTER in (*paths, nodes) else _Told()
    known = told.nodes
    if CLUSTER in paths:
        if len(paths) > 1:
            raise UnreadableInput(["give cluster, or paths; they are not one set"])
        given = Given(sorted(told.objects), Objects().documents(told.objects), known)
    else:
        files: dict[str, bytes] = {}
        for path in paths:
            if path is not CLUSTER:
                stdin = str(path) == "-"
                files |= {"<stdin>": sys.stdin.buffer.read()} if stdin else read_folder(path)
        given = Given(sorted(files), source.parse(files), known)
    if not given.places:
        return None
    return given if nodes is None or nodes is CLUSTER else given._replace(nodes=read_nodes(nodes))


class _Told(NamedTuple):
    objects: Mapping[str, bytes] = {}
    nodes: Sequence[Node] | None = None


async def _told(
    connect: Callable[[], Client], paths: Sequence[Where], nodes: Where | None
) -> _Told:
    from webhook.cli.live.asking import node_list
    from webhook.kube.policy_objects import read_objects

    async with connect() as client:
        objects = await read_objects(client) if CLUSTER in paths else {}
        return _Told(objects, await node_list(client, CLUSTER) if nodes is CLUSTER else None)


def check(given: Given, now: datetime) -> Checked | None:
    """Check the policies; None if there are none, and no classes or exceptions."""
    found = judge_set(given.documents, now=now, nodes=given.nodes)
    policies = found.policies
    if policies and not (policies.policies or policies.classes or policies.exceptions):
        return None
    return Checked(given.places, condensed(found.findings), policies, found.feasibility)
