"""Check policies, also against nodes, and report the findings as text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook import names
from webhook.decision.stamp import HASH_LENGTH
from webhook.errors import UnreadableInput
from webhook.evaluation.answer import NOT_CHECKED
from webhook.judgement.set_judgement import Objects, judge_set
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.placement.split import needs_replicas
from webhook.policy import field_releases, policy_documents
from webhook.policy.findings import condensed
from webhook.policy.refused_pods import named_classes
from webhook.questions.objects import labels_in, read_files
from webhook.questions.where import CLUSTER, Where
from webhook.shortening import count_text, first_few
from webhook.text.documents import as_finding
from webhook.text.layout import finding_text, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.judgement.set_judgement import SetJudgement
    from webhook.judgement.together.warnings import Budget
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import MatchedNodes
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.reader import Documents

# Maximum number of objects that a note names.
_NAMED: Final = 3
_WORDS: Final = {"PlacementPolicy": "policy", "CapacityClass": "class"}


class CheckInput(NamedTuple):
    """The input of a check: documents, their places, and nodes and namespaces, if they are known.

    `live`: the existing objects that policies may name, by kind, as far as a cluster was asked.
    """

    places: Sequence[str]
    documents: Documents[PolicyDocument]
    nodes: Sequence[Node] | None
    live: Mapping[str, Mapping[str, Any]]
    namespaces: Mapping[str, Mapping[str, str]] | None = None


def read_input(
    paths: Sequence[Where], nodes: Where | None, namespaces: Where | None, kubeconfig: Kubeconfig
) -> CheckInput:
    """Return the documents at the paths; the word `cluster` asks the cluster.

    Raises UnreadableInput, and ClusterError.
    """
    if CLUSTER in paths and len(paths) > 1:
        raise UnreadableInput(["give cluster or paths, not both"])
    files, listed_nodes, classes, labels = (
        kubeconfig.ask(lambda client: _read_cluster(client, paths, nodes, namespaces))
        if CLUSTER in (*paths, nodes, namespaces)
        else ({}, None, {}, None)
    )
    if namespaces is not None and namespaces is not CLUSTER:
        labels = labels_in(namespaces)
    if CLUSTER in paths:
        documents = Objects().documents(files)
    else:
        files = read_files(path for path in paths if path is not CLUSTER)
        documents = policy_documents.parse(files)
    if nodes is not None and nodes is not CLUSTER:
        # What reads objects knows Runs and all engines, which a check of policies does not need.
        from webhook.questions.offline import read_nodes

        listed_nodes = read_nodes(nodes)
    return CheckInput(sorted(files), documents, listed_nodes, classes, labels)


async def _read_cluster(
    client: Client, paths: Sequence[Where], nodes: Where | None, namespaces: Where | None
) -> tuple[
    Mapping[str, bytes],
    Sequence[Node] | None,
    Mapping[str, Mapping[str, Any]],
    Mapping[str, Mapping[str, str]] | None,
]:
    from webhook.cluster_objects.policy_objects import read_whole_objects
    from webhook.questions.cluster_surroundings import read_classes, read_labels
    from webhook.questions.live.live_answers import node_list

    objects = await read_whole_objects(client) if CLUSTER in paths else {}
    listed_nodes = await node_list(client, CLUSTER) if nodes is CLUSTER else None
    labels = await read_labels(client) if namespaces is CLUSTER else None
    return objects, listed_nodes, await read_classes(client), labels


def check(
    given: CheckInput,
    now: datetime,
    budget: Budget = UNBOUNDED,
    rollback_to: str = names.RELEASES[-1],
) -> SetJudgement | None:
    """Judge the policies, equal findings together; None if there are no documents.

    Fields that the release `rollback_to` does not read are errors.
    """
    judgement = judge_set(
        given.documents,
        budget,
        now=now,
        nodes=given.nodes,
        classes=given.live,
        namespaces=given.namespaces,
    )
    if not (given.documents.documents or judgement.findings):
        return None
    later = field_releases.findings(given.documents.documents, rollback_to)
    return judgement._replace(findings=tuple(condensed(sorted([*judgement.findings, *later]))))


def notes(given: CheckInput, checked: SetJudgement) -> Iterator[str]:
    """Yield lines about what is not known, and about what splits and fallbacks do not do."""
    yield from _unknown(given, checked)
    yield from _limits(checked)


def _unknown(given: CheckInput, checked: SetJudgement) -> Iterator[str]:
    """Yield lines about what is not known."""
    for kind, named in named_classes(given.documents.documents).items():
        if kind not in given.live:
            yield (
                f"it is unknown whether the cluster has the {kind} {first_few(named, _NAMED)}; "
                "without it pods are rejected: give `--nodes cluster`, as a user who may list "
                f"each {kind}"
            )
    if given.namespaces is None and checked.policies:
        for policy in checked.policies.policies:
            if policy.namespace_labels:
                labels = first_few(policy.namespace_labels, _NAMED)
                yield (
                    f"policy {policy.name}: its values of namespace label {labels} are not "
                    "checked: give --namespaces"
                )
    for reach in checked.feasibility.reaches if checked.feasibility else ():
        if reach.unread and reach.is_whole:
            yield (
                f"policy {reach.name}: which nodes admit its pods is unknown: the nodeSelector, "
                f"tolerations and overhead of RuntimeClass {reach.unread} are not read"
            )


def _limits(checked: SetJudgement) -> Iterator[str]:
    """Yield a line for each policy with a split or a fallback: what it does not do."""
    for policy in checked.policies.policies if checked.policies else ():
        if len(policy.shares) > 1:
            text = "a run with restartScope: Run does not live longer by its other shares"
            if needs_replicas(policy.shares):
                text += (
                    f"; percentages need the label {names.REPLICAS}, which Runs on Fairlead's own "
                    "controller have, or JobSet's: other pods are in the last share"
                )
            yield f"policy {policy.name}: split: {text}"
        if policy.fallbacks:
            yield (
                f"policy {policy.name}: fallback: it has no effect on pods that Fairlead's own "
                "controller does not create, because they have no history"
            )


def lines(given: CheckInput, checked: SetJudgement) -> Iterator[str]:
    """Yield the answer, the findings, then how many nodes each class and policy leaves."""
    errors, warnings = _severities(checked)
    colour = "red" if errors else "yellow" if warnings else "green"
    yield click.style(answer_of(given, checked), fg=colour)
    if checked.findings:
        yield ""
    for finding in checked.findings:
        yield finding_text(finding)
    if checked.feasibility is not None:
        head = ["kind", "name", "nodes chosen", "nodes tolerated", "note"]
        # -o json also has the parts of a policy.
        rows = [_row(reach) for reach in checked.feasibility.reaches if reach.is_whole]
        yield ""
        yield f"Of {count_text(checked.feasibility.total, 'node')}:"
        yield from table(head, rows)


def _row(reach: MatchedNodes) -> list[str]:
    chosen = "all" if reach.chosen is None else str(reach.chosen)
    tolerated = "?" if reach.tolerated is None else str(reach.tolerated)
    if reach.tolerated == 0 and not reach.on_demand:
        tolerated = click.style(tolerated, fg="red")
    remark = f"class {', '.join(reach.on_demand)} creates them on demand" if reach.on_demand else ""
    if reach.unread:
        remark = f"unknown: RuntimeClass {reach.unread} is not read"
    name = f"{reach.name} {reach.part}".rstrip()
    return [_WORDS[reach.kind], name, chosen, tolerated, remark]


def answer_of(given: CheckInput, checked: SetJudgement) -> str:
    """Return the numbers of errors and warnings, and what was not checked, in one sentence."""
    errors, warnings = _severities(checked)
    summary = _counts(error=errors, warning=warnings)
    if checked.policies is None:
        return f"{_counts(file=len(given.places))}: {summary}"
    if unknown := len([*_unknown(given, checked)]):
        summary += f"; {count_text(unknown, 'fact')} unknown"
    if given.nodes is None:
        summary += f"; {NOT_CHECKED}"
    policies = checked.policies
    counts = {"policy": len(policies.policies), "class": len(policies.classes)}
    if exceptions := len(policies.exceptions):
        counts["exception"] = exceptions
    what = _counts(**counts)
    return f"{what}, hash {policies.hash[:HASH_LENGTH]}: {summary}"


def _severities(checked: SetJudgement) -> tuple[int, int]:
    """Return the numbers of errors and of warnings."""
    errors = sum(finding.severity == "error" for finding in checked.findings)
    return errors, len(checked.findings) - errors


def _counts(**counts: int) -> str:
    return ", ".join(count_text(count, noun, "no") for noun, count in counts.items())


def document(given: CheckInput, checked: SetJudgement) -> dict[str, Any]:
    """Return the result as JSON."""
    policies, (errors, warnings) = checked.policies, _severities(checked)
    result: dict[str, Any] = {
        "answer": answer_of(given, checked),
        "files": list(given.places),
        "errors": errors,
        "warnings": warnings,
        "findings": [*map(as_finding, checked.findings)],
        "policies": [policy.name for policy in policies.policies] if policies else None,
        "classes": sorted(policies.classes) if policies else None,
        "exceptions": [exception.name for exception in policies.exceptions] if policies else None,
        "hash": policies.hash if policies else None,
    }
    if checked.feasibility is not None:
        result["nodes"] = {
            "total": checked.feasibility.total,
            "reach": [reach._asdict() for reach in checked.feasibility.reaches],
        }
    return result
