"""What `fairlead check` and `fairlead explain -f` answer, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.errors import InvalidDocuments, UnreadableInput

if TYPE_CHECKING:
    from webhook.evaluation.result import PodsResult
    from webhook.evaluation.world import World
    from webhook.policy.findings import Finding
    from webhook.workloads.object import Object

# A file, or a folder with all in it; several of them.
Where: TypeAlias = str | PathLike[str]
Places: TypeAlias = Where | Sequence[Where]


def _paths(places: Places) -> list[Path]:
    listed = [places] if isinstance(places, str | PathLike) else places
    paths = [Path(name) for name in listed]
    if missing := [f"{path}: no such file or folder" for path in paths if not path.exists()]:
        raise UnreadableInput(missing)
    return paths


@dataclass(frozen=True)
class Checked:
    """What `check` found. policies, classes: their names; empty if the set has an error."""

    findings: tuple[Finding, ...]
    policies: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings with which the set is not served."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def raise_for_errors(self) -> None:
        """Raise FairleadError with every error, each with file, line and column."""
        if self.errors:
            raise InvalidDocuments(self.errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or f"{len(self.policies)} policies: no findings"


def check(policies: Places, *, nodes: Where | None = None) -> Checked:
    """Check policies as `fairlead check` does.

    policies: files and folders. nodes: what `kubectl get nodes -o yaml` prints. Raises
    FairleadError for what cannot be read, not for findings.
    """
    from webhook.policy import policy_documents
    from webhook.questions.objects import read_files
    from webhook.questions.offline import read_nodes
    from webhook.questions.policy_check import CheckInput
    from webhook.questions.policy_check import check as judge

    files = read_files(_paths(policies))
    parsed_nodes = None if nodes is None else read_nodes(*_paths(nodes))
    given = CheckInput(sorted(files), policy_documents.parse(files), parsed_nodes, {})
    judged = judge(given, datetime.now(UTC))
    if judged is None:
        raise UnreadableInput([f"{', '.join(sorted(files)) or policies}: no policies"])
    known_set = judged.policies
    return Checked(
        tuple(judged.findings),
        tuple(policy.name for policy in known_set.policies) if known_set else (),
        tuple(known_set.classes) if known_set else (),
    )


@dataclass(frozen=True)
class PodsEvaluation:
    """Pods of one object with equal decisions, and what happens to them.

    result: as in `schemas/pods.json`. spec: of the first of them, as policies change it; that of
    its author if it is rejected.
    """

    result: PodsResult
    spec: dict[str, Any]

    @property
    def placement(self) -> dict[str, Any]:
        """The fields of the spec that say where the pods run."""
        from webhook.placement.fields import FIELDS

        return {field.name: self.spec[field.name] for field in FIELDS if self.spec.get(field.name)}

    @property
    def nodes(self) -> list[str] | None:
        """The names of the nodes that admit the pods; None if the nodes are not known."""
        nodes_result = self.result.nodes
        return (nodes_result.after or nodes_result.before).admitted if nodes_result else None

    @property
    def admitted(self) -> bool:
        """Whether neither a policy nor the API server refuses the pods."""
        return self.result.result != "rejected" and not self.result.refusals


@dataclass(frozen=True)
class Evaluated:
    """The answer about all pods. notes: what is not known. `str` is what the commands print."""

    pods: tuple[PodsEvaluation, ...]
    notes: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        heads = ("pods", "what happens", "placement", "set by", "nodes")
        rows = [
            "".join(f"<td><pre>{escape(cell)}</pre></td>" for cell in _cells(line, evaluation))
            for line, evaluation in zip(self.text.splitlines(), self.pods, strict=True)
        ]
        head = "".join(f"<th>{heading}</th>" for heading in heads)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><tr>{head}</tr><tr>{'</tr><tr>'.join(rows)}</tr></table>{notes}"


def _cells(line: str, evaluation: PodsEvaluation) -> tuple[str, ...]:
    """Return what a notebook shows of pods, by column."""
    from webhook.text.yaml_out import yaml_text

    subject = line.removesuffix(f": {evaluation.result.answer}")
    changed = [
        field_result
        for field_result in evaluation.result.trace
        if field_result.outcome in ("set", "removed", "rejected")
    ]
    return (
        subject,
        evaluation.result.answer,
        yaml_text(evaluation.placement) if evaluation.placement else "",
        "\n".join(
            f"{field_result.field}: {field_result.policy or 'the annotation'}"
            for field_result in changed
        ),
        "not known" if evaluation.nodes is None else "\n".join(evaluation.nodes) or "none",
    )


def evaluate(
    manifests: Where | dict[str, Any] | Sequence[Where | dict[str, Any]],
    *,
    policies: Places,
    nodes: Where | None = None,
    namespaces: Where | None = None,
    namespace: str = "default",
) -> Evaluated:
    """Return what happens to the pods of manifests, and why, as `fairlead explain -f` does.

    manifests: files, folders or objects. namespaces: what `kubectl get
    ns,priorityclass,runtimeclass,limits -A -o yaml` prints. namespace: of objects without one.
    Raises FairleadError for what cannot be read.
    """
    from webhook.questions.objects import read_objects
    from webhook.questions.offline import read_nodes, read_policies, unread_world, with_nodes
    from webhook.workloads.object import Object

    world = unread_world(read_policies(_paths(policies)))
    if nodes is not None:
        world = with_nodes(world, read_nodes(*_paths(nodes)))
    problems: list[str] = []
    listed = [manifests] if isinstance(manifests, str | PathLike | dict) else list(manifests)
    given: list[Object] = []
    for source in listed:
        if isinstance(source, dict):
            given.append(Object("python", source))
        else:
            given += read_objects(_paths(source), problems)
    return _evaluated(world, given, problems, namespaces, namespace)


def _evaluated(
    world: World,
    given: Sequence[Object],
    problems: list[str],
    namespaces: Where | None,
    namespace: str,
) -> Evaluated:
    from webhook.evaluation.result import result_of
    from webhook.questions.decisions import decisions, unknown_facts
    from webhook.questions.offline import offline_of

    file = None if namespaces is None else _paths(namespaces)[0]
    offline = offline_of(world, given, problems, namespace, file)
    groups = decisions(offline, problems)
    if problems:
        raise UnreadableInput(problems)
    if not groups:
        raise UnreadableInput(["no object makes pods"])
    notes = (*offline.describe_unknown("namespaces="), *unknown_facts(groups))
    pods = [
        PodsEvaluation(result_of(group), group.evaluation.patched.get("spec") or {})
        for group in groups
    ]
    lines = [
        f"{group.subject}: {evaluation.result.answer}"
        for group, evaluation in zip(groups, pods, strict=True)
    ]
    return Evaluated(tuple(pods), notes, "\n".join(lines))
